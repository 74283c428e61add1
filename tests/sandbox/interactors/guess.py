"""As guess.cpp, but careless: it never thinks of a program that goes too early."""

import sys

secret, allowed = int(open(sys.argv[1]).read()), int(open(sys.argv[2]).read())
for number in range(1, allowed + 1):
    guess = int(input())
    if guess == secret:
        print("=", flush=True)
        open(sys.argv[3] + "judgemessage.txt", "w").write(f"found after {number}\n")
        sys.exit(42)
    if number < allowed:
        print("<" if secret < guess else ">", flush=True)
open(sys.argv[3] + "judgemessage.txt", "w").write("too many guesses\n")
sys.exit(43)
