n = int(input())
presses = []
for _ in range(n):
    presses.append(int(input()))

display = 0
for second in range(presses[-1]):
    pressed = 0
    while pressed < n and presses[pressed] <= second:
        pressed += 1
    if pressed % 2 == 1:
        display += 1

if n % 2 == 1:
    print("still running")
else:
    print(display)
