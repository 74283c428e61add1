n = int(input())
d = list(map(int, input().split()))
line = [1] * n
for i, between in enumerate(d):
    line[between + 1] = i + 2
print(*line)
