import sys

data = sys.stdin.read().split()
papers = sorted(map(int, data[1:]), reverse=True)


def climb(h):
    if h == len(papers) or papers[h] <= h:
        return h
    return climb(h + 1)


print(climb(0))
