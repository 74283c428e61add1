"""A Kattis validator of several passes: the program doubles a number until it has the answer's many digits.

Keeps a count in a file of its own, and adds a line to its message at each pass.
"""

import os
import sys

given, digits = int(open(sys.argv[1]).read()), int(open(sys.argv[2]).read())
folder = sys.argv[3]
flags = sys.argv[4:]
if "talk" in flags:
    print(given, flush=True)
printed = sys.stdin.read().split()
with open(folder + "judgemessage.txt", "a") as message:
    message.write(f"{given} to {' '.join(printed)}\n")
before = int(open(folder + "count").read()) if os.path.exists(folder + "count") else 0
with open(folder + "count", "w") as file:
    file.write(str(before + 1))
if printed != [str(2 * given)]:
    if "insist" in flags:
        open(folder + "nextpass.in", "w").write("1")
    sys.exit(43)
if len(printed[0]) < digits:
    open(folder + "nextpass.in", "w").write(printed[0] + "\n")
else:
    open(folder + "score.txt", "w").write(str(before + 1))
sys.exit(42)
