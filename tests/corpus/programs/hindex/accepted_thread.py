import sys
import threading

sys.setrecursionlimit(10**6)
threading.stack_size(64 * 1024 * 1024)


def main():
    n = int(input())
    papers = sorted((int(input()) for _ in range(n)), reverse=True)

    def climb(h):
        if h == n or papers[h] <= h:
            return h
        return climb(h + 1)

    print(climb(0))


thread = threading.Thread(target=main)
thread.start()
thread.join()
