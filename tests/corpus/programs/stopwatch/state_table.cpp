#include <bits/stdc++.h>
using namespace std;

int main() {
    int n;
    scanf("%d", &n);
    vector<int> t(n);
    for (int i = 0; i < n; i++) scanf("%d", &t[i]);
    if (n % 2) {
        puts("still running");
        return 0;
    }
    // on[i][s]: does the timer run in second s after the first i presses?
    int last = t[n - 1];
    vector<vector<char>> on(n + 1, vector<char>(last + 1, 0));
    for (int i = 1; i <= n; i++)
        for (int s = 0; s <= last; s++)
            on[i][s] = s < t[i - 1] ? on[i - 1][s] : i % 2;
    int display = 0;
    for (int s = 0; s < last; s++) display += on[n][s];
    printf("%d\n", display);
}
