#include <bits/stdc++.h>
using namespace std;

int main() {
    int ds, ys, dm, ym;
    cin >> ds >> ys >> dm >> ym;
    int sun = ys - ds, moon = ym - dm;
    while (sun != moon) {
        if (sun < moon) sun += ys;
        else moon += ym;
    }
    cout << sun << endl;
}
