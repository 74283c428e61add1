#include <cmath>
#include <iostream>
#include <vector>
using namespace std;

const double EPS = 1e-9;

struct Point {
    double x, y;
};

double cross(Point o, Point a, Point b) {
    return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

double dist(Point a, Point b) { return hypot(a.x - b.x, a.y - b.y); }

bool between(Point a, Point b, Point c) {
    return fabs(dist(a, c) + dist(c, b) - dist(a, b)) < EPS;
}

bool hits(Point a, Point b, Point c, Point d) {
    if (between(a, b, c) || between(a, b, d)) return true;
    return cross(a, b, c) * cross(a, b, d) < -EPS && cross(c, d, a) * cross(c, d, b) < -EPS;
}

int main() {
    int w, p;
    cin >> w >> p;
    Point t;
    cin >> t.x >> t.y;
    vector<pair<Point, Point>> walls(w), pirates(p);
    for (auto &[a, b] : walls) cin >> a.x >> a.y >> b.x >> b.y;
    for (auto &[a, b] : pirates) cin >> a.x >> a.y >> b.x >> b.y;
    for (int i = 0; i < p; i++) {
        auto [pos, far] = pirates[i];
        bool visible = dist(pos, t) <= dist(pos, far) + EPS;
        double dot = (t.x - pos.x) * (far.x - pos.x) + (t.y - pos.y) * (far.y - pos.y);
        if (dot < -EPS) visible = false;
        for (auto &[a, b] : walls)
            if (visible && hits(pos, t, a, b)) visible = false;
        for (int j = 0; j < p; j++)
            if (visible && j != i && between(pos, t, pirates[j].first)) visible = false;
        cout << (visible ? "visible" : "not visible") << "\n";
    }
}
