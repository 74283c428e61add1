n, k = map(int, input().split())
watch = [False] * (n + 1)
for _ in range(k):
    watch[int(input())] = True

safe = 0
for start in range(1, n + 1):
    seen = False
    for end in range(start, n + 1):
        seen = seen or watch[end]
        if seen:
            safe += 1
print(safe)
