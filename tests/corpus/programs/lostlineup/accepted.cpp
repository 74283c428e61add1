#include <iostream>
using namespace std;

int main() {
    int n;
    cin >> n;
    int line[105];
    line[0] = 1;
    for (int i = 2; i <= n; i++) {
        int d;
        cin >> d;
        line[d + 1] = i;
    }
    for (int i = 0; i < n; i++) {
        cout << line[i];
        if (i < n - 1) cout << " ";
    }
    cout << endl;
    return 0;
}
