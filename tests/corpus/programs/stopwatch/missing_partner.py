import sys


def main():
    n, *t = map(int, sys.stdin.read().split())
    total = 0
    for i in range(0, n, 2):
        total += t[i + 1] - t[i]
    if n % 2 == 1:
        print("still running")
    else:
        print(total)


main()
