n = int(input())
total = 0
for i in range(n):
    t = int(input())
    if i % 2 == 0:
        total -= t
    else:
        total += t
print("still running" if n % 2 else total)
