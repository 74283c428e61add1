#include <iostream>
#include <string>
using namespace std;

int main() {
    long long n, k;
    cin >> n >> k;
    long long rem = 0;
    int answer = 0;
    for (long long i = 1; i <= n; i++) {
        for (char digit : to_string(i)) {
            rem = (rem * 10 + (digit - '0')) % k;
        }
        if (rem == 0) answer++;
    }
    cout << answer << endl;
    return 0;
}
