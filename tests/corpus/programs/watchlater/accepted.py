# Bitmask DP over the set of finished types. All 2^k states live side by side in one
# big integer, ten bits each, so that a step over every state is a few big operations.
WIDTH = 10


def main():
    input()
    s = input().strip()
    letters = sorted(set(s))
    k = len(letters)
    bit = {c: 1 << i for i, c in enumerate(letters)}

    def repeat(pattern, width, times):
        while times > 1:
            pattern |= pattern << width
            width *= 2
            times //= 2
        return pattern

    states = 1 << k
    guard = repeat(1 << (WIDTH - 1), WIDTH, states)
    without = []
    for i in range(k):
        low = repeat((1 << WIDTH) - 1, WIDTH, 1 << i)
        without.append(repeat(low, WIDTH << (i + 1), states >> (i + 1)))

    saved = []
    for c in letters:
        counts = {}
        mask = None
        for ch in s:
            if ch == c:
                if mask is not None:
                    counts[mask] = counts.get(mask, 0) + 1
                mask = 0
            elif mask is not None:
                mask |= bit[ch]
        lanes = bytearray(states * WIDTH // 8 + 2)
        for mask, count in counts.items():
            value = count << (mask * WIDTH % 8)
            at = mask * WIDTH // 8
            while value:
                lanes[at] |= value & 255
                value >>= 8
                at += 1
        total = int.from_bytes(lanes, "little")
        for i in range(k):
            total += (total & without[i]) << (WIDTH << i)
        saved.append(total & without[letters.index(c)])

    best = 0
    while True:
        before = best
        for i in range(k):
            candidate = ((best & without[i]) + saved[i]) << (WIDTH << i)
            larger = ((candidate | guard) - best) & guard
            larger -= larger >> (WIDTH - 1)
            best ^= (best ^ candidate) & larger
        if best == before:
            break
    print(len(s) - (best >> (WIDTH * (states - 1))))


main()
