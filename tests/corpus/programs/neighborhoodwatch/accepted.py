import sys

input = sys.stdin.readline


def main():
    n, k = map(int, input().split())
    unsafe = 0
    prev = 0
    for _ in range(k):
        h = int(input())
        gap = h - prev - 1
        unsafe += gap * (gap + 1) // 2
        prev = h
    gap = n - prev
    unsafe += gap * (gap + 1) // 2
    print(n * (n + 1) // 2 - unsafe)


if __name__ == "__main__":
    main()
