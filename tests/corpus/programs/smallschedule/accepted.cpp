#include <iostream>
using namespace std;

long long Q, M, S, L;

bool fits(long long t) {
    return M * (t / Q) >= L && M * t >= S + Q * L;
}

int main() {
    cin >> Q >> M >> S >> L;
    long long lo = 0, hi = 4000000000LL;
    while (lo < hi) {
        long long mid = (lo + hi) / 2;
        if (fits(mid)) hi = mid;
        else lo = mid + 1;
    }
    cout << lo << endl;
}
