import sys

ds, ys, dm, ym = map(int, sys.stdin.read().split())
answer = -1
for year in range(1, 1000):
    if (ds + year) % ys == 0 and (dm + year) % ym == 0:
        answer = year
        break
print(answer)
