"""Nothing of what a client sent stays with the parser."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from service.contract import GradeRequest, RunRequest
from service.contract.problems import parse_problem

BODIES: dict[str, tuple[Callable[[str], object], str]] = {
    "source": (
        GradeRequest.model_validate_json,
        '{"problem": "sha256:%s", "language": "c", "source": "%%s"}' % ("0" * 64),
    ),
    "inline problem": (
        GradeRequest.model_validate_json,
        '{"problem": {"kind": "stdio", "tests": [{"input": "%s", "output": ""}]}, "language": "c", "source": ""}',
    ),
    "problem": (parse_problem, '{"kind": "stdio", "tests": [{"input": "%s", "output": ""}]}'),
    "run": (RunRequest.model_validate_json, '{"language": "c", "source": "", "stdin": "%s"}'),
}


@pytest.mark.parametrize("of", BODIES)
def test_no_string_that_was_sent_is_kept(of: str) -> None:
    validate, body = BODIES[of]
    for number in range(100):
        validate(body % f"{of} {number}")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1000, 4000):
            validate(body % f"{of} {number}")
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000
