n, target = map(int, input().split())
numbers = list(map(int, input().split()))
pairs = 0
for i in range(n):
    for j in range(i):
        if numbers[i] + numbers[j] == target:
            pairs += 1
print(pairs)
