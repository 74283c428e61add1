"""A problem of the contract, as the sandbox takes it."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.checkers.compare import Exact, Lcb, Lines, Tokens
from service import contract
from service.stores.loading import load


def problem(**changes: Any) -> contract.Problem:
    fields = {"kind": "stdio", "tests": [{"input": "é 2\n", "output": "3\n", "name": "one"}]}
    return contract.PROBLEMS.validate_python(fields | changes)


def test_a_problem_becomes_the_sandbox_s_values() -> None:
    loaded = load(problem(exit_code="ignore", limits={"cpu_s": 3.0}))
    [test] = loaded.problem.tests
    assert (test.index, test.name, test.input_length, test.expected) == (0, "one", 5, b"3\n")
    assert len(test.stdin) == 5
    assert loaded.problem.ignore_exit_code is True
    assert loaded.limits.cpu_s == 3.0


@pytest.mark.parametrize(
    ("sent", "made"),
    [
        ({"type": "tokens"}, Tokens()),
        (
            {"type": "tokens", "case_sensitive": False, "float_absolute": 1e-6, "float_relative": 1e-9},
            Tokens(case_sensitive=False, float_absolute=1e-6, float_relative=1e-9),
        ),
        ({"type": "exact"}, Exact()),
        ({"type": "lines"}, Lines()),
        ({"type": "lcb"}, Lcb()),
    ],
)
def test_each_checker_of_the_contract_is_made(sent: dict[str, Any], made: object) -> None:
    assert load(problem(checker=sent)).problem.checker == made


def test_measuring_in_characters_shares_the_inputs() -> None:
    loaded = load(problem())
    in_chars = loaded.measured_in("chars")
    assert [test.input_length for test in in_chars.tests] == [4]
    assert in_chars.tests[0].stdin is loaded.problem.tests[0].stdin
    assert loaded.measured_in("bytes") is loaded.problem
