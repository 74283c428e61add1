#include <array>
#include <iostream>
using namespace std;

int main() {
    int n;
    cin >> n;
    array<int, 64> line{};
    line.at(0) = 1;
    for (int person = 2; person <= n; person++) {
        int d;
        cin >> d;
        line.at(d + 1) = person;
    }
    for (int i = 0; i < n; i++) cout << line.at(i) << ' ';
    cout << '\n';
}
