n, p, s = input().split()
for _ in range(int(s)):
    chosen = input().split()
    if p in chosen:
        print("KEEP")
    else:
        print("REMOVE")
