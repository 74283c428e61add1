#include <bits/stdc++.h>
using namespace std;

int n, k;
string s;
int memo[1 << 20];

int cost(int mask, int type) {
    int clicks = 0;
    char previous = 0;
    for (char c : s) {
        if (mask >> (c - 'a') & 1) continue;
        if (c - 'a' == type && c != previous) clicks++;
        previous = c;
    }
    return clicks;
}

int solve(int mask) {
    if (mask == (1 << k) - 1) return 0;
    int &result = memo[mask];
    if (result != -1) return result;
    result = INT_MAX;
    for (int type = 0; type < k; type++) {
        if (mask >> type & 1) continue;
        result = min(result, cost(mask, type) + solve(mask |
