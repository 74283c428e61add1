#include <algorithm>
#include <iostream>
#include <vector>
using namespace std;

int main() {
    int n;
    cin >> n;
    vector<int> d(n + 1), line(n);
    for (int i = 2; i <= n; i++) cin >> d[i];
    for (int i = 0; i < n; i++) line[i] = i + 1;
    do {
        bool ok = true;
        for (int pos = 1; pos < n && ok; pos++)
            if (d[line[pos]] != pos - 1) ok = false;
        if (ok) break;
    } while (next_permutation(line.begin() + 1, line.end()));
    for (int person : line) cout << person << " ";
    cout << endl;
}
