#include <bits/stdc++.h>
using namespace std;

int main() {
    long long q, m, s, l;
    cin >> q >> m >> s >> l;
    long long work = q * l + s;
    cout << (work + m - 1) / m << endl;
    return 0;
}
