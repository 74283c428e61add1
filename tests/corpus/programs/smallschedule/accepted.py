q, m, s, l = map(int, input().split())
rounds = (l + m - 1) // m
total = (s + q * l + m - 1) // m
print(max(rounds * q, total))
