"""The bounds that docs/api.md tells of: just within each is taken, just past it is not."""

from __future__ import annotations

import json
import re
import socket
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from service import bodies, connections, descriptors, problem_json, structure
from service.contract import MOST_TOLD, BatchRequest, GradeRequest, parse_problem
from service.contract.sessions import MAX_COMMAND_BYTES
from service.engines import admission
from service.errors import InvalidRequest
from service.parsing import parse

PAGE = (Path(__file__).parents[2] / "docs/api.md").read_text().partition("\n## Bounds\n")[2]
ROWS = dict(re.findall(r"^\| (.*?) \| (.*) \|$", PAGE, re.M))

ID = "sha256:" + "0" * 64
GRADE = {"problem": ID, "language": "python", "source": ""}
STDIO = {"kind": "stdio", "tests": [{"input": "", "output": ""}]}
KATTIS = {"type": "kattis", "language": "cpp", "source": ""}


def grade(**changes: Any) -> None:
    GradeRequest.model_validate_json(json.dumps(GRADE | changes))


def problem(**changes: Any) -> None:
    parse_problem(json.dumps(STDIO | changes))


def of_test(**changes: Any) -> None:
    problem(tests=[STDIO["tests"][0] | changes])  # type: ignore[index,operator]


def grouped(name: str) -> None:
    problem(tests=[{"input": "", "output": "", "points": 1, "group": name}], groups={name: {"scoring": "sum"}})


def checker(**changes: Any) -> None:
    problem(checker=KATTIS | changes)


def call(function: str) -> None:
    parse_problem(json.dumps({"kind": "call", "function": function, "tests": [{"args": [], "expected": 1}]}))


def script(text: str = "pass", entry_point: str | None = None) -> None:
    sent = {"kind": "script", "entry_point": entry_point, "tests": [{"script": text}]}
    parse_problem(json.dumps(sent))


def batch(items: int) -> None:
    BatchRequest.model_validate_json(json.dumps({"items": [GRADE] * items}))


def levels(count: int) -> None:
    # Object, list of tests, test, list of arguments: the first four.
    deep = "[" * (count - 4) + "]" * (count - 4)
    body = f'{{"kind":"call","function":"f","tests":[{{"args":[{deep}],"expected":1}}]}}'
    parse(TypeAdapter(Any), BytesIO(body.encode()))


def digits(count: int) -> None:
    parse_problem(f'{{"kind":"call","function":"f","tests":[{{"args":[{"1" * count}],"expected":1}}]}}')


def number(text: str) -> int | float:
    value = float(text.replace(",", ""))
    return int(value) if value == int(value) else value


#: By the row: what it takes to send that much.
LENGTHS = {
    "`language`": lambda n: grade(language="x" * n),
    "`source`": lambda n: grade(source="x" * n),
    "`completion`": lambda n: grade(source=None, completion="x" * n),
    "`id`": lambda n: grade(id="x" * n),
    "items of a batch": batch,
    "lists and objects inside one another": levels,
    "digits of an integer": digits,
    "tests": lambda n: problem(tests=STDIO["tests"] * n),
    "`name` of a test": lambda n: of_test(name="x" * n),
    "`script` of a test": lambda n: script("#" * n),
    "`function`, `entry_point`": lambda n: (call("x" * n), script(entry_point="x" * n)),
    "name of a group": lambda n: grouped("x" * n),
    "`source` of a checker or interactor, each of `files`": lambda n: (
        checker(source="x" * n),
        checker(source=None, files={"a.cpp": "x" * n}),
    ),
    "`files` of a checker": lambda n: checker(source=None, files={f"{i}.cpp": "" for i in range(n)}),
    "`input_file`, `output_file`, names of `files`": lambda n: (
        problem(input_file="x" * n),
        problem(output_file="x" * n),
        checker(source=None, files={"x" * n: ""}),
    ),
    "`passes`": lambda n: problem(checker=KATTIS, passes=n),
    "`memory_mb`": lambda n: problem(limits={"memory_mb": n}),
    "`output_mb`": lambda n: problem(limits={"output_mb": n}),
    "`processes`": lambda n: problem(limits={"processes": n}),
}

AMOUNTS = {
    "`time_factor`": lambda x: grade(time_factor=x),
    "`cpu_s`": lambda x: problem(limits={"cpu_s": x}),
    "`wall_s`": lambda x: problem(limits={"wall_s": x}),
    "`points` of a test": lambda x: of_test(points=x),
    "`full_score` of a checker": lambda x: checker(full_score=x),
}


def bounds(row: str) -> tuple[int | float | None, int | float]:
    """The least, where one is given, and the most."""
    found = re.match(r"(?:([\d.,]+) to )?([\d.,]*\d)", ROWS[row])
    assert found is not None
    return (None if found[1] is None else number(found[1])), number(found[2])


@pytest.mark.parametrize("row", LENGTHS)
def test_a_count_is_bounded_as_documented(row: str) -> None:
    least, most = bounds(row)
    send = LENGTHS[row]
    send(most)
    # The parser of JSON lets one level more pass than it promises.
    over = most + 2 if "inside" in row else most + 1
    with pytest.raises((ValidationError, InvalidRequest)):
        send(over)
    if least is not None:
        send(least)
        with pytest.raises(ValidationError):
            send(least - 1)


@pytest.mark.parametrize("row", AMOUNTS)
def test_an_amount_is_bounded_as_documented(row: str) -> None:
    least, most = bounds(row)
    assert least is not None
    send = AMOUNTS[row]
    for within in (least, most):
        send(within)
    for past in (least - 1e-9, most * 1.0000001):
        with pytest.raises(ValidationError):
            send(past)


def test_flags_are_bounded_as_documented() -> None:
    assert ROWS["`flags` of a checker"] == "64, of 256 characters each, without NUL"
    checker(flags=["x" * 256] * 64)
    for past in (["x"] * 65, ["x" * 257], ["\0"]):
        with pytest.raises(ValidationError):
            checker(flags=past)


def test_commands_are_bounded_as_documented() -> None:
    assert ROWS["`command`"] == f"1 to {MAX_COMMAND_BYTES:,} bytes in UTF-8, without NUL"


def test_too_deep_a_body_is_told_so_in_a_sentence() -> None:
    for count in (202, 1_000, 100_000):
        with pytest.raises(InvalidRequest, match="more than 200 levels deep") as refused:
            levels(count)
        assert refused.value.errors == ()


def test_figures_of_bodies_and_connections_are_those_that_are_enforced() -> None:
    def said(row: str, *figures: str) -> None:
        assert [figure for figure in figures if figure not in ROWS[row]] == []

    some, few = bodies._SOME_PERMITS, bodies._PERMITS
    patience, kib, mib = f"{bodies._PATIENCE_S:g} s", 2**10, 2**20
    small, large = f"{bodies._SMALL_BYTES // kib} KiB", f"{bodies.LARGE_BYTES // mib} MiB"
    pace = f"{bodies._GRACE_S:g} s more than it takes at {bodies._LEAST_BYTES_PER_S // kib} KiB/s"
    said("time a body takes", f"{bodies._WHOLE_S:g} s", small, patience, pace)
    said("bodies taken in at once", f"{some} larger than {small}", f"{few} larger than {large}", patience)
    waiting = admission._MOST_BYTES // mib
    said("grades that wait", f"{waiting} MiB of programs and completions")
    room, light = structure.MOST_WEIGHT_BYTES // 10**6, bodies._LIGHT_BYTES // mib
    said("structure taken in at once", f"{room} MB", f"{structure._EACH_BYTES} bytes", f"{light} MiB", patience)
    said("names of fields in a body", f"{structure.MAX_KEYS:,}")
    said("values in a body", f"{structure.MAX_VALUES:,}")
    said("mistakes", f"{problem_json._MOST_ERRORS} are listed", f"past {MOST_TOLD:,}")
    said("connections", f"{connections._SPARE_DESCRIPTORS} fewer", f"{descriptors.MOST_DESCRIPTORS:,}")
    said("head of a request", f"{connections._HEAD_S:g} s")
    said("answer", f"{connections._READ_BYTES // kib} KiB", f"{connections._READ_S:g} s")


def answer_to_head(url: str, head_bytes: int) -> bytes:
    host, _, port = url.removeprefix("http://").partition(":")
    start = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: "
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(start + b"x" * (head_bytes - len(start) - 4) + b"\r\n\r\n")
        return connection.recv(100)


@pytest.mark.jail
def test_the_head_of_a_request_is_bounded_as_documented(grader_url: str) -> None:
    kib = 2**10
    assert ROWS["head of a request"].startswith("64 KiB are always taken, more than 256 KiB never: 400")
    assert answer_to_head(grader_url, 64 * kib).startswith(b"HTTP/1.1 200 ")
    assert answer_to_head(grader_url, 256 * kib + 1).startswith(b"HTTP/1.1 400 ")
