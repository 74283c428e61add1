#include <iostream>
#include <vector>
using namespace std;

bool isWatchHouse(vector<long long> houses, long long house) {
    bool found = false;
    for (size_t i = 0; i < houses.size(); i++) {
        if (houses.at(i) == house) found = true;
    }
    return found;
}

int main() {
    ios::sync_with_stdio(false);
    int n, k;
    cin >> n >> k;
    vector<long long> houses(k);
    for (long long &h : houses) cin >> h;

    // every walk ending at `house` is safe if it starts at or before the last watch house
    long long rating = 0, last = 0;
    for (int house = 1; house <= n; house++) {
        if (isWatchHouse(houses, house)) last = house;
        rating += last;
    }
    cout << rating << endl;
}
