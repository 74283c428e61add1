#include <bits/stdc++.h>
using namespace std;

typedef long long ll;
typedef __int128 lll;

struct P {
    ll x, y;
    P operator-(const P &o) const { return {x - o.x, y - o.y}; }
};

int sgn(lll v) { return (v > 0) - (v < 0); }
lll cross(P a, P b) { return (lll)a.x * b.y - (lll)a.y * b.x; }
lll dot(P a, P b) { return (lll)a.x * b.x + (lll)a.y * b.y; }

// c lies on the closed segment a-b
bool onSegment(P a, P b, P c) {
    return cross(b - a, c - a) == 0 && dot(a - c, b - c) <= 0;
}

bool intersect(P a, P b, P c, P d) {
    int d1 = sgn(cross(b - a, c - a)), d2 = sgn(cross(b - a, d - a));
    int d3 = sgn(cross(d - c, a - c)), d4 = sgn(cross(d - c, b - c));
    if (d1 * d2 < 0 && d3 * d4 < 0) return true;
    return onSegment(a, b, c) || onSegment(a, b, d) || onSegment(c, d, a) || onSegment(c, d, b);
}

int main() {
    int w, p;
    scanf("%d %d", &w, &p);
    P t;
    scanf("%lld %lld", &t.x, &t.y);
    vector<P> wa(w), wb(w), pos(p), far(p);
    for (int i = 0; i < w; i++) scanf("%lld %lld %lld %lld", &wa[i].x, &wa[i].y, &wb[i].x, &wb[i].y);
    for (int i = 0; i < p; i++) scanf("%lld %lld %lld %lld", &pos[i].x, &pos[i].y, &far[i].x, &far[i].y);

    for (int i = 0; i < p; i++) {
        P look = far[i] - pos[i], to = t - pos[i];
        bool ok = dot(to, to) <= dot(look, look) && dot(to, look) >= 0;
        for (int j = 0; ok && j < w; j++)
            if (intersect(pos[i], t, wa[j], wb[j])) ok = false;
        puts(ok ? "visible" : "not visible");
    }
}
