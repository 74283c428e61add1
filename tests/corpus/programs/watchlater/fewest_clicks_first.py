def clicks(videos, kind):
    total = 0
    previous = ""
    for v in videos:
        if v == kind and previous != kind:
            total += 1
        previous = v
    return total


n, k = map(int, input().split())
videos = list(input().strip())
answer = 0
while videos:
    best = min(sorted(set(videos)), key=lambda kind: clicks(videos, kind))
    answer += clicks(videos, best)
    videos = [v for v in videos if v != best]
print(answer)
