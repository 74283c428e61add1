#include <algorithm>
#include <functional>
#include <iostream>
#include <vector>

int main() {
    int n;
    std::cin >> n;
    std::vector<int> c(n);
    for (auto &x : c) std::cin >> x;
    std::sort(c.begin(), c.end(), std::greater<int>());
    int h = 0;
    while (h < n && c[h] > h + 1) h++;
    std::cout << h << std::endl;
}
