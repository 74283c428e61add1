"""Which problems a worker keeps."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest

from service import contract
from service.stores.loaded import LoadedProblems
from service.stores.problems import ProblemStore, UnknownProblem


def problem(**changes: Any) -> contract.Problem:
    fields = {"kind": "stdio", "tests": [{"input": "é 2\n", "output": "3\n", "name": "one"}]}
    return contract.PROBLEMS.validate_python(fields | changes)


def open_fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def put(store: ProblemStore, wanted: contract.Problem) -> str:
    return store.put(contract.canonical_chunks(wanted))[0]


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
