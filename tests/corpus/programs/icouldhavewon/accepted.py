def main():
    s = input().strip()
    a_at = [i for i, ch in enumerate(s) if ch == "A"]
    b_at = [i for i, ch in enumerate(s) if ch == "B"]
    # prefix counts, so that each game of first-to-k is one jump
    a_before = [0]
    for ch in s:
        a_before.append(a_before[-1] + (ch == "A"))
    n = len(s)
    good = []
    for k in range(1, n + 1):
        pos = 0
        alice = bob = 0
        while True:
            a = a_before[pos]
            b = pos - a
            a_end = a_at[a + k - 1] if a + k - 1 < len(a_at) else n
            b_end = b_at[b + k - 1] if b + k - 1 < len(b_at) else n
            if a_end == n and b_end == n:
                break
            if a_end < b_end:
                alice += 1
                pos = a_end + 1
            else:
                bob += 1
                pos = b_end + 1
        if alice > bob:
            good.append(k)
    print(len(good))
    if good:
        print(*good)


main()
