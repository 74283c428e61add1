#include <bits/stdc++.h>
using namespace std;

int main() {
    int n;
    cin >> n;
    vector<pair<int, int>> v;
    v.push_back({-1, 1});
    for (int i = 1; i < n; i++) {
        int d;
        cin >> d;
        v.push_back({d, i});
    }
    sort(v.begin(), v.end());
    for (auto &p : v) cout << p.second << " ";
    cout << "\n";
}
