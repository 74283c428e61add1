#include <bits/stdc++.h>
using namespace std;

typedef long long ll;

int main() {
    ios_base::sync_with_stdio(0);
    cin.tie(0);
    int n, k;
    cin >> n >> k;
    vector<bool> watch(n + 1);
    for (int i = 0; i < k; i++) {
        int h;
        cin >> h;
        watch[h] = true;
    }
    ll ans = 0, last = 0;
    for (int right = 1; right <= n; right++) {
        if (watch[right]) last = right;
        ans += last;
    }
    cout << ans << "\n";
    return 0;
}
