"""Writes the tests in data/: small ones by hand, then lists of ever more digits. The same files each time."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

DATA = Path(__file__).parent / "data"

BY_HAND = {
    "sample/1": (6, [1, 5, 3, 2, 4]),
    "sample/2": (10, [7, 8, 9]),
    "secret/01-one-number": (4, [2, 100000]),
    "secret/02-itself-twice": (4, [2, 2, 1]),
    "secret/03-zeros": (0, [0, 0]),
}
#: Numbers in the list, largest number.
BY_CHANCE = {
    "secret/10-hundreds": (60, 50),
    "secret/11-hundreds": (150, 1000),
    "secret/20-thousands": (400, 50000),
    "secret/21-thousands": (1200, 50000),
    "secret/30-large": (2000, 50000),
    "secret/31-large": (15000, 60000),
}


def answer(target: int, numbers: list[int]) -> int:
    """Ordered pairs by value, less those of a number with itself, halved."""
    count = Counter(numbers)
    ordered = sum(times * count[target - number] for number, times in count.items())
    itself = count[target // 2] if target % 2 == 0 else 0
    return (ordered - itself) // 2


def write(name: str, target: int, numbers: list[int]) -> None:
    path = DATA / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".in").write_text(f"{len(numbers)} {target}\n{' '.join(map(str, numbers))}\n")
    path.with_suffix(".ans").write_text(f"{answer(target, numbers)}\n")


def main() -> None:
    chance = random.Random(5)
    for name, (target, numbers) in BY_HAND.items():
        write(name, target, numbers)
    for name, (length, largest) in BY_CHANCE.items():
        write(name, largest, [chance.randint(0, largest) for _ in range(length)])


if __name__ == "__main__":
    main()
