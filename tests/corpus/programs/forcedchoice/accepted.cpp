#include <bits/stdc++.h>
using namespace std;

int main() {
    ios::sync_with_stdio(false);
    cin.tie(nullptr);

    int n, p, s;
    cin >> n >> p >> s;
    while (s--) {
        int m;
        cin >> m;
        bool chosen = false;
        for (int i = 0; i < m; i++) {
            int card;
            cin >> card;
            if (card == p) chosen = true;
        }
        cout << (chosen ? "KEEP" : "REMOVE") << '\n';
    }
    return 0;
}
