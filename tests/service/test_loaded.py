from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest

from sandbox.checkers.compare import Exact, Lcb, Lines, Tokens
from service import contract
from service.stores.loaded import LoadedProblems, load
from service.stores.problems import ProblemStore, UnknownProblem


def problem(**changes: Any) -> contract.Problem:
    fields = {"kind": "stdio", "tests": [{"input": "é 2\n", "output": "3\n", "name": "one"}]}
    return contract.PROBLEMS.validate_python(fields | changes)


def open_fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def put(store: ProblemStore, wanted: contract.Problem) -> str:
    return store.put(contract.canonical_chunks(wanted))[0]


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


def test_a_problem_in_use_is_loaded_once(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path)
    identifier = put(store, problem())
    problems = LoadedProblems(store, limit_bytes=2**20, limit_tests=100)
    assert problems.get(identifier) is problems.get(identifier)
    with pytest.raises(UnknownProblem):
        problems.get("sha256:" + "0" * 64)


@pytest.mark.parametrize(("limit_bytes", "limit_tests"), [(2 * 8300, 100), (2**20, 2)])
def test_the_least_recently_used_goes_first(tmp_path: Path, limit_bytes: int, limit_tests: int) -> None:
    store = ProblemStore(tmp_path)
    first, second, third = (put(store, problem(limits={"cpu_s": n})) for n in (1.0, 2.0, 3.0))
    problems = LoadedProblems(store, limit_bytes=limit_bytes, limit_tests=limit_tests)
    kept, dropped = problems.get(first), problems.get(second)
    problems.get(first)
    problems.get(third)
    assert problems.get(first) is kept
    assert problems.get(second) is not dropped


def test_the_latest_problem_is_kept_however_large(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path)
    identifier = put(store, problem())
    problems = LoadedProblems(store, limit_bytes=0, limit_tests=0)
    assert problems.get(identifier) is problems.get(identifier)


def test_a_dropped_problem_gives_its_descriptors_back(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path)
    problems = LoadedProblems(store, limit_bytes=0, limit_tests=0)
    before = open_fds()
    for number in range(1, 20):
        for test in problems.get(put(store, problem(limits={"cpu_s": number}))).problem.tests:
            os.close(test.stdin.open())
    gc.collect()
    assert open_fds() <= before + 1
