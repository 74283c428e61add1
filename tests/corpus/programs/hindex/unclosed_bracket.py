import sys

data = sys.stdin.read().split()
n = int(data[0])
papers = sorted(map(int, data[1:n + 1], reverse=True)
h = 0
for i, c in enumerate(papers):
    if c >= i + 1:
        h = i + 1
print(h)
