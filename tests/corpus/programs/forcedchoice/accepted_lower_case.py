n, p, s = map(int, input().split())
for _ in range(s):
    row = list(map(int, input().split()))
    print("keep" if p in row[1:] else "remove")
