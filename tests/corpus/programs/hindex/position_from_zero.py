n = int(input())
citations = []
for _ in range(n):
    citations.append(int(input()))
citations.sort(reverse=True)
h = 0
for i in range(n):
    if citations[i] >= i:
        h = i
print(h)
