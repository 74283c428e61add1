import sys

data = sys.stdin.buffer.read().split()
n, k = int(data[0]), int(data[1])
houses = list(map(int, data[2:2 + k]))

total = n * (n + 1) // 2
prev = 0
for h in houses:
    gap = h - prev - 1
    total -= gap * (gap + 1) // 2
    prev = h
print(total if houses else 0)
