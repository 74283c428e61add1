import sys
from itertools import permutations


def cost(order, s):
    total = 0
    for kind in order:
        previous = None
        for c in s:
            if c == kind and previous != kind:
                total += 1
            previous = c
        s = s.replace(kind, "")
    return total


def main():
    n, k, s = sys.stdin.read().split()
    best = int(n)
    for order in permutations(sorted(set(s))):
        best = min(best, cost(order, s))
    print(best)


main()
