#include <iostream>

int main() {
    int n;
    std::cin >> n;
    if (n % 2 == 1) {
        std::cout << "still running" << std::endl;
        return 0;
    }
    long long sum = 0;
    for (int i = 0; i < n / 2; ++i) {
        long long start, stop;
        std::cin >> start >> stop;
        sum += stop - start;
    }
    std::cout << sum << std::endl;
    return 0;
}
