n, target = map(int, input().split())
seen: set[int] = set()
pairs = 0
for number in map(int, input().split()):
    if target - number in seen:
        pairs += 1
    seen.add(number)
print(pairs)
