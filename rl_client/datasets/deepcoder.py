"""DeepCoder-Preview (agentica-org/DeepCoder-Preview-Dataset): subsets in two forms, stdin problems and calls.

Source: the published rows, and the rewards of github.com/rllm-org/rllm for what `official` does.
"""

from __future__ import annotations

from typing import Any

from rl_client.datasets.base import Entry, Preset, Reader, build
from rl_client.datasets.calls import function_name, gradable_calls, json_lines, refuse_integer_keys
from rl_client.datasets.input_output import problem_of, unwrapped
from rl_client.datasets.row import Row, RowError, parse_json
from rl_client.datasets.stdio import gradable, stdio_test
from rl_client.datasets.submissions import LISTED

#: rLLM's for tests in LiveCodeBench's form, and for all others.
_LCB_CPU_S = 6.0
_CPU_S = 12.0

#: Its grader sets none; this keeps one program from taking the machine.
_MEMORY_MB = 1024

_STDIN = frozenset({"stdin", "stdin_stdout"})
_CALL = frozenset({"functional", "function_call"})


def read(row: Row, preset: Preset) -> Entry:
    """One row. All its tests are taken, where rLLM runs the fifteen with the longest inputs."""
    content = row.json("tests")
    match content:
        case dict():
            fields, cpu_s = problem_of(Row(content, "tests")), _CPU_S
        case list():
            tests = Row({"tests": content}).rows("tests")
            if not tests:
                raise RowError("no tests", "tests: empty")
            fields = _of_list(row, tests)
            cpu_s = _LCB_CPU_S if "testtype" in tests[0].values else _CPU_S
        case None:
            raise RowError("no tests", "tests: empty")
        case _:
            raise row.fault("tests", f"must hold a list or an object, not {type(content).__name__}")
    problem = build(**fields, **_judging(fields["kind"], preset), limits={"cpu_s": cpu_s, "memory_mb": _MEMORY_MB})
    labels = {"function": fields["function"]} if "function" in fields else {}
    return Entry(problem, "", labels)


def _judging(kind: str, preset: Preset) -> dict[str, Any]:
    if kind == "call":
        return {"loose": preset == "official", "prelude": "lcb"}
    return {"checker": {"type": "lcb"}, "exit_code": "ignore" if preset == "official" else "strict"}


def _of_list(row: Row, tests: list[Row]) -> dict[str, Any]:
    types = {test.text("testtype") or test.text("type") or "stdin" for test in tests}
    if types <= _STDIN:
        return {"kind": "stdio", "tests": gradable((_stdin(test) for test in tests), "tests")}
    if types <= _CALL:
        name = function_name(_named(row, tests[0]), "metadata.func_name")
        return {"kind": "call", "tests": gradable_calls(_calls(tests), "tests"), "function": name}
    raise RowError("unsupported", f"tests: of the types {', '.join(sorted(types))}")


def _named(row: Row, first: Row) -> Any:
    """The function's name: of the test itself, of its metadata, or of the row's, a struct or JSON."""
    if first.values.get("fn_name") is not None:
        return first.values["fn_name"]
    own = first.row("metadata")
    if own is not None and own.values.get("func_name") is not None:
        return own.values["func_name"]
    metadata = row.json("metadata")
    return metadata.get("func_name") if isinstance(metadata, dict) else None


def _stdin(test: Row) -> dict[str, str]:
    """Texts, or lists of their lines."""
    lines = {name: "\n".join(test.values[name]) for name in ("input", "output") if _are_lines(test.values.get(name))}
    return stdio_test(Row({**test.values, **lines}, test.path))


def _are_lines(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def _calls(tests: list[Row]) -> list[dict[str, Any]]:
    """LiveCodeBench's form, an argument a line; or arguments and answers as data, these as APPS has them."""
    if all(isinstance(test.values.get(name), str) for test in tests for name in ("input", "output")):
        given = [json_lines(test.values["input"], test.where("input")) for test in tests]
        wanted = [parse_json(test.values["output"], test.where("output")) for test in tests]
    else:
        for test in tests:
            if not isinstance(test.values.get("input"), list) or "output" not in test.values:
                raise test.fault("input", "input and output must both be text of JSON values, or a list and a value")
        given = [test.values["input"] for test in tests]
        wanted = unwrapped([test.values["output"] for test in tests])
    for test, args in zip(tests, given, strict=True):
        refuse_integer_keys(args, test.where("input"))
    return [{"args": args, "expected": expected} for args, expected in zip(given, wanted, strict=True)]


READER = Reader(
    name="deepcoder",
    title="DeepCoder (agentica-org/DeepCoder-Preview-Dataset)",
    columns=("tests", "metadata"),
    read=read,
    submissions=LISTED,
)
