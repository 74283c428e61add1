import sys


def main():
    lines = sys.stdin.read().splitlines()
    n, p, s = map(int, lines[0].split())
    out = []
    for i in range(1, s + 1):
        m, *cards = map(int, lines[i].split())
        out.append("KEEP" if p in set(cards) else "REMOVE")
    print("\n".join(out))


main()
