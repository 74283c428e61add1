#include <bits/stdc++.h>
using namespace std;

int main() {
    unsigned n, k;
    scanf("%u %u", &n, &k);
    unsigned rem = 0, shift = 10, ans = 0;
    for (unsigned i = 1; i <= n; ++i) {
        if (i == shift) shift *= 10;
        rem = (rem * shift + i) % k;
        if (rem == 0) ++ans;
    }
    printf("%u\n", ans);
}
