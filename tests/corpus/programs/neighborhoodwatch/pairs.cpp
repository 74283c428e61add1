#include <bits/stdc++.h>
using namespace std;

int main() {
    int n, k;
    cin >> n >> k;
    vector<int> watch(n + 1, 0);
    for (int i = 0; i < k; i++) {
        int h;
        cin >> h;
        watch[h] = 1;
    }
    long long safe = 0;
    for (int i = 1; i <= n; i++) {
        bool seen = false;
        for (int j = i; j <= n; j++) {
            if (watch[j]) seen = true;
            if (seen) safe++;
        }
    }
    cout << safe << endl;
}
