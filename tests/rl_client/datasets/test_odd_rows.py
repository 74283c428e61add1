"""Rows of every set with something odd in them: each is a problem, or is reported; none ends an import."""

from __future__ import annotations

import contextlib
import datetime
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rl_client.datasets.base import Entry, Reader, readers
from rl_client.datasets.importing import Candidate, candidates_of, encoded
from rl_client.datasets.row import RowError
from rl_client.datasets.rows import Record
from tests.rl_client.datasets import (
    test_apps,
    test_code_contests,
    test_codecontests_plus,
    test_codeforces,
    test_deepcoder,
    test_evalplus,
    test_kodcode,
    test_livecodebench,
    test_synthetic1,
    test_taco,
)

ROWS: dict[str, list[dict[str, Any]]] = {
    "apps": [test_apps.STDIN, test_apps.CALL],
    "taco": [test_taco.ROW, test_taco.CALL],
    "code-contests": [test_code_contests.ROW],
    "codecontests-plus": [test_codecontests_plus.ROW],
    "codeforces": [test_codeforces.ROW],
    "deepcoder": [test_deepcoder.LCB_CALL, test_deepcoder.TACO_STDIN, test_deepcoder.PRIME_WRAPPED],
    "kodcode": [test_kodcode.ROW, test_kodcode.ONLINE_JUDGE],
    "livecodebench": [test_livecodebench.STDIN, test_livecodebench.CALL],
    "synthetic1": [test_synthetic1.row(test_synthetic1.STDIN_INFO), test_synthetic1.row(test_synthetic1.CALL_INFO)],
    "humaneval-plus": [test_evalplus.HUMANEVAL],
    "mbpp-plus": [test_evalplus.MBPP],
    "problems": [
        {
            "key": "sum",
            "statement": "Add.",
            "difficulty": "easy",
            "problem": {"kind": "stdio", "tests": [{"input": "1 2\n", "output": "3\n"}], "limits": {"cpu_s": 1.5}},
        }
    ],
}

ODD: list[Any] = [
    *(None, "", " ", 0, -1, 1.5, -0.0, float("nan"), float("inf"), True, 2**63, 10**400, -(10**400)),
    *([], {}, [[]], [{}], [None], {"": ""}, {"input": ["1"], "output": []}, {"input": "1", "output": "2"}),
    *("x", "\0", "\ud800", "1" * 5000, "[]", "[[[[", "null", "NaN", "{'a': 1}", "def f(", "1e999 mb", "\u0661"),
    *({"seconds": "x"}, {"seconds": 10**400}, b"bytes", datetime.datetime(2020, 1, 1), datetime.timedelta(1)),
]


def odd(value: Any, rng: random.Random) -> Any:
    """The value with something in it left out, exchanged or broken."""
    if rng.random() < 0.25:
        return rng.choice(ODD)
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        without = {name: one for name, one in value.items() if name != key}
        return without if rng.random() < 0.1 else value | {key: odd(value[key], rng)}
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        return [*value[:at], *([] if rng.random() < 0.1 else [odd(value[at], rng)]), *value[at + 1 :]]
    if isinstance(value, str) and value:
        with contextlib.suppress(ValueError, RecursionError):
            if value[0] in "[{":
                return json.dumps(odd(json.loads(value), rng), default=str)
        at = rng.randrange(len(value))
        return value[:at] + rng.choice(["", "\0", "\ud800", "[", "\n"]) + value[at + 1 :]
    return rng.choice(ODD)


def candidate(reader: Reader, row: dict[str, Any], strict: bool) -> Candidate:
    record = Record(Path("rows"), 0, lambda: row, 0)
    preset: Any = "strict" if strict else "official"
    return next(candidates_of([record], reader, preset, where={}, submissions=True))


@pytest.mark.parametrize("name", ROWS)
def test_an_odd_row_is_a_problem_or_reported(name: str) -> None:
    rng, reader, seen = random.Random(name), readers()[name], Counter[str]()
    for _ in range(1000):
        row = rng.choice(ROWS[name])
        for _ in range(rng.randrange(1, 4)):
            row = row | {(key := rng.choice(list(row))): odd(row[key], rng)}
        try:
            entry, _ = encoded(candidate(reader, row, strict=rng.random() < 0.5))
        except RowError as error:
            assert error.detail
            assert "\n" not in error.detail
            seen[error.fault] += 1
        else:
            assert_well_formed(entry)
            seen["problem"] += 1
    assert seen["problem"] > 100, seen
    assert len(seen) > 2, seen


def assert_well_formed(entry: Entry) -> None:
    json.dumps(dict(entry.labels), allow_nan=False)
    assert isinstance(entry.key, str)


def test_every_set_is_here() -> None:
    assert ROWS.keys() == readers().keys()
