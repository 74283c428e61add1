"""LiveCodeBench (livecodebench/code_generation and code_generation_lite).

Source: `code_generation.py`, `testing_util.py` and ERRATA.md of github.com/LiveCodeBench/LiveCodeBench. Private tests
are JSON, or JSON that was pickled, compressed and written in base64. A pickle is a program: this one is read opcode by
opcode, as the text it must be, and never run.
"""

from __future__ import annotations

import base64
import pickletools
import re
import zlib
from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.calls import function_name, gradable_calls, json_lines
from rl_client.datasets.row import Row, RowError, parse_json
from rl_client.datasets.statements import in_column
from rl_client.datasets.stdio import gradable, stdio_test

_CPU_S = 6.0

#: What its grader means to set, and does not.
_MEMORY_MB = 4096

#: More than any row holds; a bomb ends there.
_MAX_UNPACKED_BYTES = 2**30

_MULTIPLE = "several answers are right, one is accepted"
_INTERACTIVE = "interactive"
_WRONG_TESTS = "wrong tests"

#: By question id, or by title as LeetCode's addresses have it.
_ERRATA = (
    dict.fromkeys("abc311_c abc326_d abc327_b abc333_e abc343_a abc343_e abc362_c arc185_c".split(), _MULTIPLE)
    | dict.fromkeys(
        (
            "find-words-containing-character",
            "find-the-peaks",
            "generate-binary-strings-without-adjacent-zeros",
        ),
        _MULTIPLE,
    )
    | dict.fromkeys(("abc337_e", "abc355_e"), _INTERACTIVE)
    | dict.fromkeys(
        ("abc350_c", "arc189_a", "apply-operations-to-make-string-empty", "most-frequent-ids"),
        _WRONG_TESTS,
    )
)

#: The opcodes of a pickled str, in every protocol, and nothing that could build anything else.
_TEXT_OPCODES = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_FRAME_OPCODES = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})

_LABELS = ("platform", "difficulty", "contest_id", "contest_date", "question_title")


def read(row: Row, preset: Preset) -> Entry:
    """One row. `strict` takes no row that the set's own errata name."""
    key = row.needed_text("question_id")
    erratum = _ERRATA.get(key) or _ERRATA.get(_slug(row.text("question_title") or ""))
    if erratum is not None and preset == "strict":
        raise RowError("unsupported", f"question_id: in the set's errata: {erratum}")
    tests = [
        test
        for suite, content in (
            ("public", row.json("public_test_cases")),
            ("private", _private(row)),
        )
        for test in _named(suite, content)
    ]
    if not tests:
        raise RowError("no tests", "public_test_cases and private_test_cases: no tests")
    fields = _problem(row, tests) | {"limits": {"cpu_s": _CPU_S, "memory_mb": _MEMORY_MB}}
    problem = build(**fields, **_judging(fields["kind"], preset))
    labels = {name: _label(row, name) for name in _LABELS if row.values.get(name) is not None}
    if "function" in fields:
        labels["function"] = fields["function"]
    if erratum is not None:
        labels["erratum"] = erratum
    return Entry(problem, key, labels)


def _private(row: Row) -> Any:
    if isinstance(content := row.values.get("private_test_cases"), list):
        return content
    return private_tests(row.text("private_test_cases") or "", "private_test_cases")


def private_tests(text: str, where: str) -> Any:
    """What the column of private tests stands for; None where it is blank. Raises RowError."""
    if not text.strip():
        return None
    if text.lstrip()[0] in '[{"':
        return parse_json(text, where)
    try:
        packed = base64.b64decode(text, validate=True)
    except ValueError:
        raise RowError("undecodable", f"{where}: neither JSON nor base64") from None
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, _MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise RowError("undecodable", f"{where}: {error}") from None
    if not unpacker.eof:
        size = f"unpack to more than {_MAX_UNPACKED_BYTES // 2**20} MiB"
        raise RowError("undecodable", f"{where}: they {size if unpacker.unconsumed_tail else 'break off'}")
    return parse_json(unpickled_text(data, where), where)


def unpickled_text(data: bytes, where: str) -> str:
    """The str that a pickle holds. Raises RowError where it holds, or would do, anything else."""
    text: str | None = None
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in _TEXT_OPCODES and text is None:
                text = argument
            elif opcode.name not in _FRAME_OPCODES:
                raise RowError("undecodable", f"{where}: a pickle of more than a str ({opcode.name})")
    except (ValueError, EOFError, OverflowError) as error:
        raise RowError("undecodable", f"{where}: no pickle: {error}") from None
    if text is None:
        raise RowError("undecodable", f"{where}: a pickle of nothing")
    return text


def _named(suite: str, content: Any) -> list[tuple[str, Row]]:
    name = f"{suite}_test_cases"
    if content is None:
        return []
    if not isinstance(content, list):
        raise RowError("malformed", f"{name}: must hold a list, not {type(content).__name__}")
    return [(f"{suite}/{index}", test) for index, test in enumerate(Row({name: content}).rows(name))]


def _problem(row: Row, tests: list[tuple[str, Row]]) -> dict[str, Any]:
    types = {test.text("testtype") for _, test in tests}
    if types == {"stdin"}:
        return {
            "kind": "stdio",
            "tests": gradable((stdio_test(test, name) for name, test in tests), "test_cases"),
        }
    if types == {"functional"}:
        metadata = row.json("metadata")
        name = metadata.get("func_name") if isinstance(metadata, dict) else None
        return {
            "kind": "call",
            "function": f"Solution.{function_name(name, 'metadata.func_name')}",
            "tests": gradable_calls(
                [
                    {
                        "args": json_lines(test.values.get("input"), test.where("input")),
                        "expected": parse_json(test.needed_text("output"), test.where("output")),
                        "name": name,
                    }
                    for name, test in tests
                ],
                "test_cases",
            ),
        }
    raise RowError("malformed", f"testtype: {', '.join(sorted(map(str, types)))}; must be stdin or functional alone")


def _judging(kind: str, preset: Preset) -> dict[str, Any]:
    if kind == "call":
        return {"prelude": "lcb", "loose": preset == "official"}
    return {"checker": {"type": "lcb"}, "exit_code": "ignore" if preset == "official" else "strict"}


def _label(row: Row, name: str) -> str | int | float | bool | None:
    """The date is a timestamp in parquet, text in JSON lines."""
    value = row.values[name]
    return value.isoformat() if hasattr(value, "isoformat") else row.label(name)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


READER = Reader(
    name="livecodebench",
    title="LiveCodeBench (code_generation, code_generation_lite)",
    columns=("question_id", "public_test_cases", "private_test_cases", "metadata", *_LABELS),
    read=read,
    statement=in_column("question_content", "starter_code"),
)
