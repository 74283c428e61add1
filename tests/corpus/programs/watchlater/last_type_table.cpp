#include <bits/stdc++.h>
using namespace std;

const long long INF = 1e18;

int main() {
    int n, k;
    string s;
    cin >> n >> k >> s;
    map<char, int> id;
    for (char c : s)
        if (!id.count(c)) {
            int next = id.size();
            id[c] = next;
        }
    k = id.size();

    // dp[mask][last], the cost of each step, and the way back
    vector<vector<long long>> dp(1 << k, vector<long long>(k, INF));
    vector<vector<long long>> cost(1 << k, vector<long long>(k, 0));
    vector<vector<long long>> parent(1 << k, vector<long long>(k, -1));

    for (int mask = 0; mask < (1 << k); mask++) {
        int previous = -1;
        for (char ch : s) {
            int c = id[ch];
            if (mask >> c & 1) continue;
            if (c != previous) cost[mask][c]++;
            previous = c;
        }
    }
    for (int c = 0; c < k; c++) dp[1 << c][c] = cost[0][c];
    for (int mask = 1; mask < (1 << k); mask++)
        for (int last = 0; last < k; last++) {
            if (dp[mask][last] == INF) continue;
            for (int c = 0; c < k; c++) {
                if (mask >> c & 1) continue;
                long long value = dp[mask][last] + cost[mask][c];
                if (value < dp[mask | 1 << c][c]) {
                    dp[mask | 1 << c][c] = value;
                    parent[mask | 1 << c][c] = last;
                }
            }
        }
    cout << *min_element(dp.back().begin(), dp.back().end()) << endl;
}
