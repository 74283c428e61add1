#include <bits/stdc++.h>
using namespace std;

const int MAXH = 1000;

int main() {
    ios::sync_with_stdio(false);
    cin.tie(nullptr);
    int n;
    cin >> n;
    vector<int> cnt(MAXH + 1, 0);
    for (int i = 0; i < n; i++) {
        int c;
        cin >> c;
        cnt[min(c, MAXH)]++;
    }
    int sum = 0, h = MAXH;
    for (; h > 0; h--) {
        sum += cnt[h];
        if (sum >= h) break;
    }
    cout << h << '\n';
}
