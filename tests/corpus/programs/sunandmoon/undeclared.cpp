#include <bits/stdc++.h>
using namespace std;

int main() {
    int ds, ys, dm, ym;
    cin >> ds >> ys >> dm >> ym;
    for (int t = 1; t <= limit; t++) {
        if ((t + ds) % ys == 0 && (t + dm) % ym == 0) {
            cout << t << endl;
            break;
        }
    }
    return 0;
}
