#include <bits/stdc++.h>
using namespace std;

int main() {
    int n;
    cin >> n;
    vector<int> t(n);
    for (int &x : t) cin >> x;
    if (n & 1) cout << "still running\n";
    else cout << t.back() - t.front() << "\n";
}
