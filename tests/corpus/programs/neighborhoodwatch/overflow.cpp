#include <cstdio>

int main() {
    int n, k;
    scanf("%d %d", &n, &k);
    unsigned total = 0;
    int prev = 0;
    for (int i = 0; i < k; i++) {
        int h;
        scanf("%d", &h);
        total += (unsigned)(h - prev) * (n - h + 1);
        prev = h;
    }
    printf("%u\n", total);
    return 0;
}
