#include <iostream>
#include <string>
#include <vector>
using namespace std;

int main() {
    string s;
    cin >> s;
    int n = s.length();
    vector<int> result;
    for (int k = 1; k <= n / 2; k++) {
        int alice = 0, bob = 0, a = 0, b = 0;
        for (int i = 0; i < n; i++) {
            s[i] == 'A' ? a++ : b++;
            if (a == k) { alice++; a = 0; b = 0; }
            if (b == k) { bob++; a = 0; b = 0; }
        }
        if (alice > bob) result.push_back(k);
    }
    cout << result.size() << endl;
    for (int k : result) cout << k << " ";
    cout << endl;
}
