def main():
    n, k = map(int, input().split())
    rem = 0
    shift = 10
    count = 0
    for i in range(1, n + 1):
        if i == shift:
            shift *= 10
        rem = (rem * shift + i) % k
        if rem == 0:
            count += 1
    print(count)


if __name__ == "__main__":
    main()
