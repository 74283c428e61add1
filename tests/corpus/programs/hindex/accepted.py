import sys


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    citations = sorted(data[1:], reverse=True)
    h = 0
    for i, c in enumerate(citations, 1):
        if c < i:
            break
        h = i
    print(h)


main()
