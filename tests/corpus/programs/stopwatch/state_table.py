import sys


def main():
    n, *presses = map(int, sys.stdin.read().split())
    last = presses[-1]
    # one timeline for each press, so that they can be compared second by second
    timelines = [[0] * (last + 1) for _ in presses]
    for timeline, press in zip(timelines, presses):
        timeline[press] = 1

    running = False
    display = 0
    events = set(presses)
    for second in range(last + 1):
        if running:
            display += 1
        if second in events:
            running = not running
    print("still running" if running else display)


main()
