n = int(input())
papers = [input() for _ in range(n)]

best = 0
for h in range(1, n + 1):
    count = 0
    for i in range(n):
        if int(papers[i]) >= h:
            count += 1
    if count >= h:
        best = h
print(best)
