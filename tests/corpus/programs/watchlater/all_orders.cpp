#include <bits/stdc++.h>
using namespace std;

int best = INT_MAX;

void go(string s, int clicks) {
    if (s.empty()) {
        best = min(best, clicks);
        return;
    }
    set<char> kinds(s.begin(), s.end());
    for (char kind : kinds) {
        string rest;
        int cost = 0;
        for (size_t i = 0; i < s.size(); i++) {
            if (s[i] != kind) rest += s[i];
            else if (i == 0 || s[i - 1] != kind) cost++;
        }
        go(rest, clicks + cost);
    }
}

int main() {
    int n, k;
    string s;
    cin >> n >> k >> s;
    go(s, 0);
    cout << best << endl;
}
