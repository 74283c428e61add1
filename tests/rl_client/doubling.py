"""Doubling a number: a problem, what a model answers to it, and what a grader says of that."""

from __future__ import annotations

from typing import Any

import httpx

from rl_client.encoded import EncodedProblem
from service.contract import StdioProblem, StdioTest, Verdict
from tests.rl_client.results import graded

#: Tests of 2, 21 and 301 characters.
DOUBLE = StdioProblem(
    kind="stdio", tests=tuple(StdioTest(input=f"{'1' * size}\n", output=f"{'2' * size}\n") for size in (1, 20, 300))
)
ID = EncodedProblem.of(DOUBLE).id

RIGHT = "```python\nprint(2 * int(input()))\n```"
SMALL_ONLY = "```python\nx = input()\nprint(2 * int(x) if len(x) < 100 else 0)\n```"
WRONG = "```python\nprint(0)\n```"
NOTHING = "I cannot."


def _body(*tests: tuple[int, Verdict]) -> dict[str, Any]:
    return graded(*tests).model_dump(mode="json")


ACCEPTED = _body((4, Verdict.ACCEPTED), (40, Verdict.ACCEPTED))
FAULT = _body((4, Verdict.ACCEPTED), (40, Verdict.INTERNAL_ERROR))
#: No test for R_1 and R_2.
EMPTY = _body((400, Verdict.ACCEPTED))

#: What has no reward: what the grader says, fields of the label, and why.
UNREWARDED = [
    (FAULT, {}, "the grader failed at this program: internal_error"),
    (FAULT, {"fault": "retry"}, "the grader failed at this program: internal_error"),
    (EMPTY, {"reward": "r_k:2"}, "r_k:2 has no tests"),
]


def stored(url: str, problem: StdioProblem = DOUBLE) -> str:
    """Have the grader there keep a problem; its id."""
    answer = httpx.put(f"{url}/problems", content=EncodedProblem.of(problem).content, timeout=60)
    assert answer.status_code in (200, 201), answer.text
    identifier: str = answer.json()["id"]
    return identifier
