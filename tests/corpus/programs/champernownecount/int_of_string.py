n, k = map(int, input().split())
word = ""
count = 0
for i in range(1, n + 1):
    word += str(i)
    if int(word) % k == 0:
        count += 1
print(count)
