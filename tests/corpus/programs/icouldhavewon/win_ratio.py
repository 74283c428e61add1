def games(s, k):
    score = {"A": 0, "B": 0}
    wins = {"A": 0, "B": 0}
    for ch in s:
        score[ch] += 1
        if score[ch] == k:
            wins[ch] += 1
            score = {"A": 0, "B": 0}
    return wins["A"], wins["B"]


s = input().strip()
ks = []
for k in range(1, len(s) + 1):
    a, b = games(s, k)
    if a == 0 and b == 0:
        continue
    if a / b > 1:
        ks.append(k)
print(len(ks))
print(*ks)
