import sys

first, *steps = sys.stdin.read().strip().split("\n")
n, p, s = first.split()
for step in steps:
    m, cards = step.split(" ", 1)
    print("KEEP" if p in cards else "REMOVE")
