#include <iostream>
using namespace std;

int main() {
    int ds, ys, dm, ym;
    cin >> ds >> ys;
    cin >> dm >> ym;
    for (int t = 1; t <= 5000; t++) {
        if (t % ys == ds && t % ym == dm) {
            cout << t << endl;
            return 0;
        }
    }
    cout << 5000 << endl;
}
