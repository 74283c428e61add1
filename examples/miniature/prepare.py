"""Writes what the miniature trains and is evaluated on: `sft.jsonl`, `training.jsonl`, `held-out.jsonl`, in a folder.

Problems are as `rkgrade import problems` and `rkgrade evaluate problems` take them; lines of `sft.jsonl` are a `prompt`
and a `completion`. Expected outputs are those of a problem's fast program, which on short inputs has to print what the
slow one does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from family import EASY, MIDDLE, Problem, Shape, shapes

#: The fast programs take 0.01 s, 0.017 on a busy machine, the slow ones more than 0.2 s where they are to meet it.
LIMITS = {"cpu_s": 0.04, "memory_mb": 128}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--examples", type=int, required=True, help="of programs")
    parser.add_argument("--training", type=int, required=True, help="problems")
    parser.add_argument("--held-out", type=int, required=True, help="problems")
    parser.add_argument("--slow-share", type=float, default=0.7, help="of the programs; the others are fast")
    parser.add_argument("--easy", action="store_true", help="few shapes; what is held out are constants alone")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    training: Iterable[Problem]
    held_out: Iterable[Problem]
    if given.easy:
        shown = EASY
        drawn = _distinct(EASY, given.training + given.held_out, chance)
        training, held_out = drawn[: given.training], drawn[given.training :]
        unknown = {problem.key for problem in held_out}
    else:
        unknown = set()
        shown, others = shapes(given.seed)
        training, held_out = _drawn(shown[: given.training], chance), _drawn(others[: given.held_out], chance)
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (
        ("sft", _examples(shown, given.examples, given.slow_share, chance, unknown)),
        ("training", _problems(training, chance)),
        ("held-out", _problems(held_out, chance)),
    ):
        (given.folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _drawn(of: Iterable[Shape], chance: random.Random) -> Iterator[Problem]:
    """One of each, as they are asked for."""
    return (Problem.drawn(shape, chance) for shape in of)


def _distinct(of: Iterable[Shape], count: int, chance: random.Random) -> list[Problem]:
    """As many of each, and none twice."""
    problems = dict[str, Problem]()
    for problem in _drawn(itertools.cycle(of), chance):
        problems.setdefault(problem.key, problem)
        if len(problems) == count:
            break
    return list(problems.values())


def _examples(
    of: Sequence[Shape], count: int, slow_share: float, chance: random.Random, unknown: Collection[str]
) -> Iterator[dict[str, str]]:
    """`unknown`: keys of problems that are not shown."""
    shown = (problem for problem in _drawn(iter(lambda: chance.choice(of), None), chance) if problem.key not in unknown)
    for problem in itertools.islice(shown, count):
        program = problem.slow if chance.random() < slow_share else problem.fast
        yield {"prompt": problem.statement, "completion": f"```python\n{program}```"}


def _problems(problems: Iterable[Problem], chance: random.Random) -> Iterator[dict[str, Any]]:
    for problem in problems:
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
