from collections import Counter

n, target = map(int, input().split())
seen: Counter[int] = Counter()
pairs = 0
for number in map(int, input().split()):
    pairs += seen[target - number]
    seen[number] += 1
print(pairs)
