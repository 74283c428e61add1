def main():
    q, m, s, l = map(int, input().split())
    full, left = divmod(l, m)
    time = full * q
    if left:
        # the machines without a long slot in the last round take the short ones
        room = (m - left) * q
        time += q
        if s > room:
            time += (s - room) // m
    else:
        time += s // m
    print(time)


main()
