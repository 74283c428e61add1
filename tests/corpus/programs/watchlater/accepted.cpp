#include <bits/stdc++.h>
using namespace std;

int main() {
    int n, k;
    string s;
    cin >> n >> k >> s;
    string types = s;
    sort(types.begin(), types.end());
    types.erase(unique(types.begin(), types.end()), types.end());
    k = types.size();

    vector<int> id(n);
    for (int i = 0; i < n; i++) id[i] = types.find(s[i]);

    // saved[mask][c]: clicks saved on type c when exactly the types of mask are gone
    vector<array<short, 20>> saved(1 << k);
    for (auto &row : saved) row.fill(0);
    vector<int> total(k, 0), between(k, -1);
    for (int i = 0; i < n; i++) {
        int c = id[i];
        total[c]++;
        if (between[c] >= 0) saved[between[c]][c]++;
        for (int d = 0; d < k; d++)
            if (between[d] >= 0) between[d] |= 1 << c;
        between[c] = 0;
    }
    for (int b = 0; b < k; b++)
        for (int mask = 0; mask < (1 << k); mask++)
            if (mask >> b & 1)
                for (int c = 0; c < 20; c++) saved[mask][c] += saved[mask ^ (1 << b)][c];

    vector<int> dp(1 << k, INT_MAX);
    dp[0] = 0;
    for (int mask = 0; mask < (1 << k); mask++)
        for (int c = 0; c < k; c++)
            if (!(mask >> c & 1)) {
                int &next = dp[mask | 1 << c];
                next = min(next, dp[mask] + total[c] - saved[mask][c]);
            }
    cout << dp.back() << endl;
}
