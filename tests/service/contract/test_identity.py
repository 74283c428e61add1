"""Canonical JSON, and the id that a problem is known by."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

import pytest

from service.contract import PROBLEMS, canonical_chunks, parse_problem, problem_id
from tests.service.contract.samples import ID, POINTED, PROBLEM, TESTS

SUM = {"scoring": "sum"}


def test_canonical_json_is_sorted_compact_utf8_without_defaults() -> None:
    problem = PROBLEMS.validate_python(
        {
            "tests": [{"output": "é\n", "input": '"\t', "name": None}],
            "limits": {"memory_mb": 256, "cpu_s": 3},
            "kind": "stdio",
            "exit_code": "strict",
            "checker": {"type": "exact"},
        }
    )
    canonical = (
        '{"checker":{"type":"exact"},"kind":"stdio","limits":{"cpu_s":3.0},'
        '"tests":[{"input":"\\"\\t","output":"é\\n"}]}'
    ).encode()

    assert b"".join(canonical_chunks(problem)) == canonical
    assert problem_id(problem) == "sha256:" + hashlib.sha256(canonical).hexdigest()
    assert parse_problem(canonical) == problem


@pytest.mark.parametrize("text", ["x", "\n", '"', "é", "\x00", "\U0001f600"])
def test_canonical_json_is_what_the_json_module_writes_and_comes_in_small_pieces(text: str) -> None:
    long = text * (2**20 + 3) + "end"
    problems = [
        {"kind": "stdio", "tests": [{"input": long, "output": text, "points": 0.1, "group": text}],
         "groups": {"b": {"scoring": "sum"}, text: {"scoring": "min", "depends": ["b"]}}},
        {"kind": "call", "function": "f", "tests": [
            {"args": [{"b": [], "a": {}, text: [1, -0.0, 1e300, 10**30, True, None]}, long], "expected": [[]]},
            {"args": [[*range(5000), 0.5, [], *range(5000), text, None] * 3], "expected": True}]},
    ]  # fmt: skip
    problems[0]["tests"].append({"input": "", "output": "", "points": 1.0, "group": "b"})  # type: ignore[attr-defined]
    for sent in problems:
        problem = PROBLEMS.validate_python(sent)
        pieces = list(canonical_chunks(problem))
        whole = json.dumps(
            problem.model_dump(exclude_defaults=True), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
        assert b"".join(pieces) == whole.encode()
        assert max(map(len, pieces)) <= 6 * 2**20


@pytest.mark.parametrize(
    ("problem", "identifier"),
    [
        (PROBLEM, "sha256:b1701230d977eb79e6eb4a9c6f5a1aaa2247d8d5e2983b02cb28fef1b03e341b"),
        (
            {
                "kind": "stdio",
                "tests": [{"input": "é 1\n", "output": "2\n", "name": "one"}, {"input": "", "output": ""}],
                "checker": {"type": "tokens", "float_absolute": 1e-6},
                "limits": {"cpu_s": 3, "memory_mb": 512},
                "exit_code": "ignore",
            },
            "sha256:6ead2bdf1d305850f26ccb39b98579b1d4fe27cecbe07602e7815367a9d22766",
        ),
    ],
)
def test_ids_given_out_once_stay_what_they_are(problem: dict[str, Any], identifier: str) -> None:
    assert problem_id(PROBLEMS.validate_python(problem)) == identifier


def test_the_id_rests_on_what_a_problem_means_not_on_how_it_was_sent() -> None:
    def identify(**fields: Any) -> str:
        return problem_id(PROBLEMS.validate_python(PROBLEM | fields))

    spelled_out = {"cpu_s": 2, "wall_s": None, "memory_mb": 256, "output_mb": 64, "processes": 64}

    assert identify() == identify(limits=spelled_out, checker={"type": "tokens"}, exit_code="strict")
    different = [
        identify(),
        identify(checker={"type": "exact"}),
        identify(checker={"type": "lcb"}),
        identify(checker={"type": "tokens", "case_sensitive": False}),
        identify(limits={"cpu_s": 2.5}),
        identify(exit_code="ignore"),
        identify(input_file="input.txt"),
        identify(output_file="input.txt"),
        identify(tests=[TESTS[0] | {"points": 1}]),
        identify(tests=[POINTED], groups={"a": SUM}),
        identify(tests=[POINTED], groups={"a": {"scoring": "min"}}),
        identify(tests=TESTS * 2),
        identify(tests=[TESTS[0] | {"name": "a"}]),
        identify(tests=[TESTS[0] | {"input": "1 2"}]),
    ]
    assert len(set(different)) == len(different)


def test_the_id_of_a_hundred_megabytes_takes_seconds_at_most() -> None:
    line = "12345 67890 é\n"
    tests = [{"input": line * 65_536, "output": line} for _ in range(100)]
    problem = PROBLEMS.validate_python({"kind": "stdio", "tests": tests})

    began = time.process_time()
    identity = problem_id(problem)

    assert time.process_time() - began < 5
    assert len(identity) == len(ID)
