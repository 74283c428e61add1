n, k = map(int, input().split())

r = 0
p = 10
ans = 0
for i in range(1, n + 1):
    if i > p:
        p *= 10
    r = (r * p + i) % k
    if r == 0:
        ans += 1

print(ans)
