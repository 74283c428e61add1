"""Writes what the miniature trains and is evaluated on: `sft.jsonl`, `training.jsonl`, `held-out.jsonl`, in a folder.

Problems are as `rkgrade import problems` and `rkgrade evaluate problems` take them; lines of `sft.jsonl` are a `prompt`
and a `completion`. Expected outputs are those of a problem's fast program, which on short inputs has to print what the
slow one does.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from family import MIDDLE, Problem, Shape, shapes

#: The fast programs take 0.01 s at most, the slow ones more than 0.2 s where they are to meet it.
LIMITS = {"cpu_s": 0.04, "memory_mb": 128}

#: Of the programs that are shown; the others are fast.
SLOW_SHARE = 0.7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--examples", type=int, required=True, help="of programs")
    parser.add_argument("--training", type=int, required=True, help="problems")
    parser.add_argument("--held-out", type=int, required=True, help="problems")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    training, held_out = shapes(given.seed)
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (
        ("sft", _examples(training, given.examples, chance)),
        ("training", _problems(training, given.training, chance)),
        ("held-out", _problems(held_out, given.held_out, chance)),
    ):
        (given.folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _examples(of: list[Shape], count: int, chance: random.Random) -> Iterator[dict[str, str]]:
    for _ in range(count):
        problem = Problem.drawn(chance.choice(of), chance)
        program = problem.slow if chance.random() < SLOW_SHARE else problem.fast
        yield {"prompt": problem.statement, "completion": f"```python\n{program}```"}


def _problems(of: list[Shape], count: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    for shape in of[:count]:
        problem = Problem.drawn(shape, chance)
        tests = [{"input": given, "output": printed(problem.fast, given)} for given in problem.inputs(chance)]
        for test in tests:
            if len(test["input"]) < MIDDLE and printed(problem.slow, test["input"]) != test["output"]:
                raise AssertionError(f"{problem.key}: its two programs differ")
        yield {
            "key": problem.key,
            "statement": problem.statement,
            "problem": {"kind": "stdio", "limits": LIMITS, "tests": tests},
        }


def printed(program: str, given: str) -> str:
    """What one of the family's own programs prints."""
    lines, out = iter(given.split("\n")), list[str]()
    exec(program, {"input": lambda: next(lines), "print": lambda value: out.append(f"{value}\n")})
    return "".join(out)


if __name__ == "__main__":
    main()
