import sys
from functools import cmp_to_key
from math import gcd


def half(v):
    return 0 if v[1] > 0 or (v[1] == 0 and v[0] > 0) else 1


def compare(u, v):
    hu, hv = half(u), half(v)
    if hu != hv:
        return hu - hv
    cross = u[0] * v[1] - u[1] * v[0]
    return -1 if cross > 0 else (1 if cross < 0 else 0)


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    w, p, tx, ty = data[:4]
    walls = []
    at = 4
    for _ in range(w):
        x1, y1, x2, y2 = data[at:at + 4]
        walls.append(((x1 - tx, y1 - ty), (x2 - tx, y2 - ty)))
        at += 4
    pirates = []
    for _ in range(p):
        pirates.append(tuple(data[at:at + 4]))
        at += 4

    # The treasure is the origin: rank every direction by angle, exactly.
    vectors = [v for wall in walls for v in wall]
    vectors += [(x - tx, y - ty) for x, y, _, _ in pirates]
    vectors = sorted(set(vectors), key=cmp_to_key(compare))
    rank = {}
    r = 0
    for i, v in enumerate(vectors):
        if i and compare(vectors[i - 1], v) != 0:
            r += 1
        rank[v] = r

    spans = []
    for a, b in walls:
        cross = a[0] * b[1] - a[1] * b[0]
        if cross < 0:
            a, b = b, a
        spans.append((rank[a], rank[b], a, b, cross == 0))

    nearest = {}
    for x, y, _, _ in pirates:
        dx, dy = x - tx, y - ty
        g = gcd(dx, dy)
        key = (dx // g, dy // g)
        if key not in nearest or g < nearest[key]:
            nearest[key] = g

    def blocked(x, y):
        here = rank[(x, y)]
        for lo, hi, a, b, flat in spans:
            if lo <= hi:
                if here < lo or here > hi:
                    continue
            elif hi < here < lo:
                continue
            if flat:
                if a[0] * a[0] + a[1] * a[1] < x * x + y * y:
                    return True
            elif (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) < 0:
                return True
        return False

    out = []
    for x, y, fx, fy in pirates:
        dx, dy = x - tx, y - ty
        lx, ly = fx - x, fy - y
        visible = dx * dx + dy * dy <= lx * lx + ly * ly and -dx * lx - dy * ly >= 0
        if visible:
            g = gcd(dx, dy)
            visible = nearest[(dx // g, dy // g)] == g and not blocked(dx, dy)
        out.append("visible" if visible else "not visible")
    print("\n".join(out))


main()
