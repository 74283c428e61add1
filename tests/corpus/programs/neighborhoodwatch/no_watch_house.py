import sys

data = [int(x) for x in sys.stdin.read().split()]
n = data[0]
houses = data[2:]


def walks(m):
    return m * (m + 1) // 2


unsafe = walks(houses[0] - 1) + walks(n - houses[-1])
for a, b in zip(houses, houses[1:]):
    unsafe += walks(b - a - 1)
print(walks(n) - unsafe)
