#include <bits/stdc++.h>
using namespace std;

int hIndex(vector<int> &citations) {
    sort(citations.rbegin(), citations.rend());
    int h = 0;
    while (h < (int)citations.size() && citations[h] > h) h++;
    return h;
}

int main() {
    int n;
    cin >> n;
    vector<int> citations(n);
    for (int &c : citations) cin >> c;
    int answer = hIndex(citations);
    cout << answer << endl;
    return answer;
}
