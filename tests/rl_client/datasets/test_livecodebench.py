"""LiveCodeBench: both ways of writing private tests, calls, errata, and pickles that would build something."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

from rl_client.datasets import livecodebench
from rl_client.datasets.livecodebench import private_tests
from rl_client.datasets.row import RowError
from service.contract import CallProblem, CallTest, LcbChecker, ProblemLimits, StdioProblem, StdioTest
from tests.rl_client.datasets.importing import FORMS, import_rows, verdicts
from tests.serving import Server


def packed(content: object, protocol: int = pickle.DEFAULT_PROTOCOL) -> str:
    """As the set packs the JSON of its private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(content, protocol))).decode()


PUBLIC = json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}])
PRIVATE = json.dumps([{"input": "4 \u00e9\n", "output": "9\n", "testtype": "stdin"}])

STDIN: dict[str, Any] = {
    "question_title": "A+B",
    "question_content": "Add.",
    "platform": "atcoder",
    "question_id": "abc300_a",
    "contest_id": "abc300",
    "contest_date": "2023-04-29T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": PUBLIC,
    "private_test_cases": packed(PRIVATE),
    "metadata": "{}",
}

CALL: dict[str, Any] = STDIN | {
    "question_id": "2777",
    "platform": "leetcode",
    "starter_code": "class Solution:\n    def find(self, nums: List[int], k: int) -> int:\n        ",
    "public_test_cases": json.dumps([{"input": "[1,2,3]\n2", "output": "5", "testtype": "functional"}]),
    "private_test_cases": json.dumps([{"input": '["a"]\n-1\n', "output": "[0.5, null]", "testtype": "functional"}]),
    "metadata": json.dumps({"func_name": "find"}),
}

LIMITS = ProblemLimits(cpu_s=6.0, memory_mb=4096)

STDIN_TESTS = (
    StdioTest(input="1 2\n", output="3\n", name="public/0"),
    StdioTest(input="4 \u00e9\n", output="9\n", name="private/0"),
)
CALL_TESTS = (
    CallTest(args=([1, 2, 3], 2), expected=5, name="public/0"),
    CallTest(args=(["a"], -1), expected=[0.5, None], name="private/0"),
)


def test_columns_of_json_may_hold_what_they_stand_for(tmp_path: Path) -> None:
    read = {"public_test_cases": json.loads(PUBLIC), "private_test_cases": PRIVATE, "metadata": {}}
    assert (
        import_rows("livecodebench", tmp_path, [STDIN | read], form="jsonl").problems
        == import_rows("livecodebench", tmp_path, [STDIN]).problems
    )


@pytest.mark.parametrize("form", FORMS)
def test_official_judges_as_the_sets_own_grader(tmp_path: Path, form: str) -> None:
    imported = import_rows("livecodebench", tmp_path, [STDIN, CALL], form=form)

    assert imported.status == 0
    assert imported.problems == [
        StdioProblem(
            kind="stdio", tests=STDIN_TESTS, checker=LcbChecker(type="lcb"), limits=LIMITS, exit_code="ignore"
        ),
        CallProblem(kind="call", function="Solution.find", prelude="lcb", loose=True, tests=CALL_TESTS, limits=LIMITS),
    ]
    assert [(line["key"], line["labels"]) for line in imported.mapping] == [
        (
            "abc300_a",
            {
                "platform": "atcoder",
                "difficulty": "easy",
                "contest_id": "abc300",
                "contest_date": "2023-04-29T00:00:00",
                "question_title": "A+B",
            },
        ),
        (
            "2777",
            {
                "platform": "leetcode",
                "difficulty": "easy",
                "contest_id": "abc300",
                "contest_date": "2023-04-29T00:00:00",
                "question_title": "A+B",
                "function": "Solution.find",
            },
        ),
    ]


def test_strict_heeds_exit_codes_and_types(tmp_path: Path) -> None:
    stdin, call = import_rows("livecodebench", tmp_path, [STDIN, CALL], "--preset", "strict").problems
    assert stdin.exit_code == "strict"
    assert isinstance(call, CallProblem)
    assert not call.loose


def test_a_date_may_be_a_timestamp(tmp_path: Path) -> None:
    from datetime import datetime

    row = STDIN | {"contest_date": datetime(2023, 4, 29)}
    (line,) = import_rows("livecodebench", tmp_path, [row]).mapping
    assert line["labels"]["contest_date"] == "2023-04-29T00:00:00"


@pytest.mark.parametrize(
    ("change", "erratum"),
    [
        ({"question_id": "abc343_a"}, "several answers are right, one is accepted"),
        ({"question_id": "abc337_e"}, "interactive"),
        ({"question_id": "3", "question_title": "Find the Peaks"}, "several answers are right, one is accepted"),
        ({"question_id": "3", "question_title": "most-frequent-ids"}, "wrong tests"),
    ],
)
def test_errata_are_labelled_and_no_problem_when_strict(tmp_path: Path, change: dict[str, str], erratum: str) -> None:
    (line,) = import_rows("livecodebench", tmp_path, [STDIN | change]).mapping
    assert line["labels"]["erratum"] == erratum

    strict = import_rows("livecodebench", tmp_path, [STDIN | change], "--preset", "strict")
    assert strict.reasons == [("unsupported", f"question_id: in the set's errata: {erratum}")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"public_test_cases": "[]", "private_test_cases": ""},
            ("no tests", "public_test_cases and private_test_cases: no tests"),
        ),
        ({"private_test_cases": "[{"}, ("undecodable", "private_test_cases: not JSON")),
        ({"private_test_cases": "!!!!"}, ("undecodable", "private_test_cases: neither JSON nor base64")),
        ({"private_test_cases": "AAAA"}, ("undecodable", "private_test_cases: Error -3 while decompressing")),
        (
            {"private_test_cases": base64.b64encode(zlib.compress(b"x" * 999)[:-6]).decode()},
            ("undecodable", "private_test_cases: they break off"),
        ),
        (
            {"private_test_cases": base64.b64encode(zlib.compress(b"xyz")).decode()},
            ("undecodable", "private_test_cases: no pickle"),
        ),
        ({"private_test_cases": packed("[{")}, ("undecodable", "private_test_cases: not JSON")),
        ({"private_test_cases": packed('{"a": 1}')}, ("malformed", "private_test_cases: must hold a list, not dict")),
        ({"private_test_cases": "[7]"}, ("malformed", "private_test_cases[0]: must be a struct, not int")),
        (
            {"private_test_cases": CALL["private_test_cases"]},
            ("malformed", "testtype: functional, stdin; must be stdin or functional alone"),
        ),
        (
            {"public_test_cases": '[{"input": "1", "testtype": "stdin"}]'},
            ("malformed", "public_test_cases[0]: output: missing"),
        ),
        ({"question_id": ""}, ("malformed", "question_id: empty")),
    ],
)
def test_what_is_no_problem_is_skipped(tmp_path: Path, change: dict[str, Any], reason: tuple[str, str]) -> None:
    imported = import_rows("livecodebench", tmp_path, [STDIN | change, STDIN])

    assert imported.status == 1
    ((fault, words),) = imported.reasons
    assert (fault, words[: len(reason[1])]) == reason
    assert [line["row"] for line in imported.mapping] == [1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metadata": "{}"}, ("malformed", "metadata.func_name: no name of a function: 'None'")),
        ({"metadata": '{"func_name": "a b"}'}, ("malformed", "metadata.func_name: no name of a function: 'a b'")),
        (
            {"public_test_cases": '[{"input": "[1", "output": "1", "testtype": "functional"}]'},
            ("undecodable", "public_test_cases[0].input, line 1: not JSON"),
        ),
        (
            {"public_test_cases": '[{"input": "1", "output": "", "testtype": "functional"}]'},
            ("malformed", "public_test_cases[0].output: empty"),
        ),
        (
            {"public_test_cases": '[{"input": "1", "output": "yes", "testtype": "functional"}]'},
            ("undecodable", "public_test_cases[0].output: not JSON"),
        ),
        (
            {"public_test_cases": '[{"input": "1", "output": "NaN", "testtype": "functional"}]'},
            ("refused", "tests[0].expected"),
        ),
    ],
)
def test_a_call_that_is_no_problem_is_skipped(tmp_path: Path, change: dict[str, Any], reason: tuple[str, str]) -> None:
    ((fault, words),) = import_rows("livecodebench", tmp_path, [CALL | change]).reasons
    assert (fault, words[: len(reason[1])]) == reason


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", ['["a"]', '["\u00e9\\n\u4e2d"]', '["' + "x" * 300_000 + '"]'], ids=len)
def test_a_pickled_text_of_every_protocol_is_read(protocol: int, text: str) -> None:
    assert private_tests(packed(text, protocol), "here") == json.loads(text)


class Hostile:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self._path,))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_hostile_pickle_runs_nothing(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "mark"
    for content in (Hostile(mark), ["[]", Hostile(mark)], {"[]": Hostile(mark)}):
        with pytest.raises(RowError, match="a pickle of more than a str"):
            private_tests(packed(content, protocol), "here")
        assert not mark.exists()
        pickle.loads(pickle.dumps(content, protocol))
        assert mark.exists(), "the pickle is not hostile at all"
        mark.unlink()


@pytest.mark.parametrize(
    "content", [7, 7.5, None, True, b"[]", ["[]"], ("[]",), {"[]"}, {"[]": "[]"}, bytearray(b"[]")]
)
def test_a_pickle_of_anything_but_a_text_is_refused(content: object) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(RowError, match="a pickle of more than a str"):
            private_tests(packed(content, protocol), "here")


def test_opcodes_behind_a_text_are_refused() -> None:
    """A text, and then a call whose result takes its place on the stack."""
    data = b"\x8c\x02[]" + b"cbuiltins\nprint\n(tR."
    with pytest.raises(RowError, match=r"a pickle of more than a str \(GLOBAL\)"):
        livecodebench.unpickled_text(data, "here")


@pytest.mark.parametrize("data", [b"", b".", b"\x80\x05", b"\x8c\xff[]", b"\xff", b"\x8d" + b"\xff" * 8])
def test_a_damaged_pickle_is_refused(data: bytes) -> None:
    with pytest.raises(RowError):
        livecodebench.unpickled_text(data, "here")


def test_a_bomb_ends_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(livecodebench, "_MAX_UNPACKED_BYTES", 2**20)
    with pytest.raises(RowError, match="they unpack to more than 1 MiB"):
        private_tests(packed("[" + " " * 2**21 + "]"), "here")


@pytest.mark.jail
def test_a_grader_calls_the_function_of_an_imported_row(tmp_path: Path, grader: Server) -> None:
    solution = """class Solution:
    def find(self, nums: List[int], k: int):
        return sum(nums) - 1 if k == 2 else (0.5, {})
"""
    found = verdicts("livecodebench", tmp_path, CALL, grader.url, solution.format("None"), solution.format("1"))
    assert found == ["accepted", "wrong_answer"]
