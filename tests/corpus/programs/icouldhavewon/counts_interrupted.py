s = input()
answer = []
for k in range(1, len(s) + 1):
    alice = bob = a = b = 0
    for c in s:
        if c == "A":
            a += 1
        else:
            b += 1
        if a == k:
            alice += 1
            a = b = 0
        elif b == k:
            bob += 1
            a = b = 0
    # whoever leads the unfinished game takes it
    if a > b:
        alice += 1
    elif b > a:
        bob += 1
    if alice > bob:
        answer.append(k)
print(len(answer))
if answer:
    print(" ".join(map(str, answer)))
