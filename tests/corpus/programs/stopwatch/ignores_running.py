n = int(input())
times = [int(input()) for _ in range(n)]
total = 0
for start, stop in zip(times[::2], times[1::2]):
    total += stop - start
print(total)
