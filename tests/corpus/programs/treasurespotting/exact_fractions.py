import sys
from fractions import Fraction


def sub(a, b):
    return (a[0] - b[0], a[1] - b[1])


def cross(a, b):
    return a[0] * b[1] - a[1] * b[0]


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1]


def position_on(a, b, c):
    """Where c lies along a -> b as a fraction, or None when it is off the line."""
    along = sub(b, a)
    t = Fraction(dot(sub(c, a), along), dot(along, along))
    foot = (a[0] + t * along[0], a[1] + t * along[1])
    return t if foot == c else None


def wall_blocks(a, b, c, d):
    r, s = sub(b, a), sub(d, c)
    det = cross(r, s)
    if det == 0:
        for end in (c, d):
            t = position_on(a, b, end)
            if t is not None and 0 <= t <= 1:
                return True
        return False
    t = Fraction(cross(sub(c, a), s), det)
    u = Fraction(cross(sub(c, a), r), det)
    return 0 <= t <= 1 and 0 <= u <= 1


def main():
    data = sys.stdin.read().split()
    w, p = int(data[0]), int(data[1])
    it = map(Fraction, data[2:])
    treasure = (next(it), next(it))
    walls = [((next(it), next(it)), (next(it), next(it))) for _ in range(w)]
    pirates = [((next(it), next(it)), (next(it), next(it))) for _ in range(p)]
    for i, (eye, far) in enumerate(pirates):
        hidden_by_wall = [wall_blocks(eye, treasure, c, d) for c, d in walls]
        hidden_by_pirate = []
        for j, (other, _) in enumerate(pirates):
            if i != j:
                t = position_on(eye, treasure, other)
                hidden_by_pirate.append(t is not None and 0 <= t <= 1)
        to, look = sub(treasure, eye), sub(far, eye)
        in_view = dot(to, to) <= dot(look, look) and dot(to, look) >= 0
        print("visible" if in_view and not any(hidden_by_wall) and not any(hidden_by_pirate) else "not visible")


main()
