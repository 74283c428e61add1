#include <bits/stdc++.h>
using namespace std;

int main() {
    string s;
    cin >> s;
    vector<int> ks;
    for (int k = 1; k <= (int)s.size(); k++) {
        int a = 0, b = 0, winA = 0, winB = 0;
        for (char c : s) {
            if (c == 'A') a++;
            else b++;
            if (a == k) {
                winA++;
                a = b = 0;
            } else if (b == k) {
                winB++;
                a = b = 0;
            }
        }
        if (winA > winB) ks.push_back(k);
    }
    cout << ks.size() << "\n";
    for (size_t i = 0; i < ks.size(); i++) cout << ks[i] << " \n"[i + 1 == ks.size()];
}
