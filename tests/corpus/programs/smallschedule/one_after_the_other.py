import math

Q, M, S, L = map(int, input().split())
print(Q * math.ceil(L / M) + math.ceil(S / M))
