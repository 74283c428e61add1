#include <bits/stdc++.h>
using namespace std;

int main() {
    string s;
    getline(cin, s);
    vector<int> ks;
    for (int k = 1; k <= (int)s.size(); ++k) {
        int a = 0, b = 0, wa = 0, wb = 0;
        for (char c : s) {
            if (c == 'A') ++a; else ++b;
            if (a == k) { ++wa; a = b = 0; }
            if (b == k) { ++wb; a = b = 0; }
        }
        int percent = 100 * wa / (wa + wb);
        if (percent > 50 || (percent == 50 && wa > wb)) ks.push_back(k);
    }
    cout << ks.size() << '\n';
    for (int k : ks) cout << k << ' ';
    cout << '\n';
}
