"""Does what its input says, whatever the program does."""

import os
import signal
import sys
import time

deed = open(sys.argv[1]).read().strip()
if deed == "exits 0":
    sys.exit(0)
elif deed == "exits 1":
    sys.exit(1)
elif deed == "dies":
    os.kill(os.getpid(), signal.SIGSEGV)
elif deed == "raises":
    raise ValueError("secret")
elif deed == "loops":
    while True:
        pass
elif deed == "sleeps":
    time.sleep(1000)
elif deed == "eats":
    eaten = [b"x" * 2**20 for _ in range(4096)]
elif deed == "floods the program":
    while True:
        os.write(1, b"x" * 10000)
elif deed == "floods feedback":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    with open(sys.argv[3] + "judgemessage.txt", "w") as file:
        while True:
            file.write("x" * 2**20)
elif deed.startswith("leaves "):
    for name in range(int(deed.split()[1])):
        with open(f"{sys.argv[3]}{name}", "w") as file:
            file.write("x" * int(deed.split()[2]))
    sys.exit(42)
elif deed == "asks for another pass":
    open(sys.argv[3] + "nextpass.in", "w").write("1")
    sys.exit(42)
elif deed == "keeps":
    kept = list(sys.stdin)
    sys.exit(43)
elif deed == "hoards":
    kept = [bytearray(line.encode() * 2**20) for line in sys.stdin]
    sys.exit(43)
elif deed == "forgets":
    for line in sys.stdin:
        pass
    sys.exit(42)
elif deed == "forks":
    while True:
        os.fork()
elif deed == "scores a rejection":
    open(sys.argv[3] + "score.txt", "w").write("1")
    sys.exit(43)
elif deed == "scores nonsense":
    open(sys.argv[3] + "score.txt", "w").write("much")
    sys.exit(42)
elif deed == "works":
    while time.process_time() < 0.4:
        pass
    print(input())
    sys.exit(42)
elif deed.startswith("scores "):
    open(sys.argv[3] + "score.txt", "w").write(deed.split()[1])
    sys.exit(42)
