import sys


def main():
    n, k, s = sys.stdin.read().split()
    letters = sorted(set(s))
    k = len(letters)
    index = {c: i for i, c in enumerate(letters)}
    videos = [index[c] for c in s]
    inf = float("inf")

    # dp[mask][last], and the clicks that each type costs once mask is gone
    dp = [[inf] * k for _ in range(1 << k)]
    cost = [[0] * k for _ in range(1 << k)]

    for mask in range(1 << k):
        previous = -1
        for c in videos:
            if mask >> c & 1:
                continue
            if c != previous:
                cost[mask][c] += 1
            previous = c

    for c in range(k):
        dp[1 << c][c] = cost[0][c]
    for mask in range(1, 1 << k):
        here = min(dp[mask])
        for c in range(k):
            if not mask >> c & 1:
                after = mask | 1 << c
                dp[after][c] = min(dp[after][c], here + cost[mask][c])
    print(min(dp[-1]))


main()
