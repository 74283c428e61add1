import sys


def solve():
    n, k = map(int, sys.stdin.readline().split())
    word = 0
    total = 0
    for i in range(1, n + 1):
        word = word * 10 ** len(str(i)) + i
        if word % k == 0:
            total += 1
    return total


print(solve())
