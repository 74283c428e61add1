#include <algorithm>
#include <iostream>
#include <vector>
using namespace std;

int main() {
    int q, m, s, l;
    cin >> q >> m >> s >> l;
    vector<long long> load(m, 0);
    for (int i = 0; i < l; i++) *min_element(load.begin(), load.end()) += q;
    for (int i = 0; i < s; i++) *min_element(load.begin(), load.end()) += 1;
    cout << *max_element(load.begin(), load.end()) << endl;
}
