#include <iostream>
#include <string>
using namespace std;

int main() {
    int n, k;
    string s;
    cin >> n >> k >> s;
    int runs = 1;
    for (int i = 1; i < n; i++)
        if (s[i] != s[i - 1]) runs++;
    // the types at the two ends of the list join up once everything between is gone
    if (s.front() == s.back() && runs > 1) runs--;
    cout << runs << endl;
}
