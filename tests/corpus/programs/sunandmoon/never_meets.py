ds, ys = map(int, input().split())
dm, ym = map(int, input().split())

t = ys
while (t + ds) % ys != 0 or (t + dm) % ym != 0:
    t += ys
print(t)
