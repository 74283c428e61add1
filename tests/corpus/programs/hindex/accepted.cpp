#include <bits/stdc++.h>
using namespace std;

int main() {
    int n;
    scanf("%d", &n);
    vector<int> cnt(n + 1, 0);
    for (int i = 0; i < n; i++) {
        int c;
        scanf("%d", &c);
        cnt[min(c, n)]++;
    }
    int papers = 0;
    for (int h = n; h >= 0; h--) {
        papers += cnt[h];
        if (papers >= h) {
            printf("%d\n", h);
            return 0;
        }
    }
}
