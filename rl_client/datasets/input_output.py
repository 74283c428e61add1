"""The column `input_output` of APPS, which TACO took over: stdin tests, or calls where it names a function."""

from __future__ import annotations

from typing import Any

from rl_client.datasets.calls import function_name, gradable_calls, refuse_integer_keys
from rl_client.datasets.row import Row, RowError
from rl_client.datasets.stdio import gradable


def read_input_output(row: Row, name: str = "input_output") -> dict[str, Any]:
    """`kind`, `tests` and, of calls, `function` of the problem in a column of JSON text. Raises RowError."""
    content = row.json(name)
    if content is None or content == {} or content == []:
        raise RowError("no tests", f"{name}: empty")
    if not isinstance(content, dict):
        raise row.fault(name, f"must hold an object, not {type(content).__name__}")
    return problem_of(Row(content, name))


def problem_of(content: Row) -> dict[str, Any]:
    """The same of an object with `inputs`, `outputs` and, of calls, `fn_name`. Raises RowError."""
    if content.values.get("fn_name") is None:
        return stdio_problem(content, "inputs", "outputs")
    inputs, outputs = _pair(content, "inputs", "outputs")
    name = function_name(content.values["fn_name"], content.where("fn_name"))
    return {"kind": "call", "tests": _calls(content, inputs, outputs), "function": name}


def stdio_problem(content: Row, given: str, wanted: str) -> dict[str, Any]:
    """The same of an object with two lists of these names; each text may be a list of lines. Raises RowError."""
    inputs, outputs = _pair(content, given, wanted)
    tests = [
        {
            "input": _joined(one, content.where(f"{given}[{index}]")),
            "output": _joined(other, content.where(f"{wanted}[{index}]")),
        }
        for index, (one, other) in enumerate(zip(inputs, outputs, strict=True))
    ]
    return {"kind": "stdio", "tests": gradable(tests, content.path)}


def _pair(content: Row, given: str, wanted: str) -> tuple[list[Any], list[Any]]:
    inputs, outputs = content.items(given), content.items(wanted)
    if len(inputs) != len(outputs):
        raise content.fault(given, f"{len(inputs)} of them, but {len(outputs)} {wanted}")
    if not inputs:
        raise RowError("no tests", f"{content.path}: no tests")
    return inputs, outputs


def _joined(value: Any, where: str) -> str:
    """A text, or a list of its lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise RowError("malformed", f"{where}: must be a string or a list of strings, not {type(value).__name__}")
    return value


def _calls(content: Row, inputs: list[Any], outputs: list[Any]) -> list[dict[str, Any]]:
    tests = []
    for index, (given, wanted) in enumerate(zip(inputs, unwrapped(outputs), strict=True)):
        where = content.where(f"inputs[{index}]")
        if not isinstance(given, list):
            raise RowError("malformed", f"{where}: must be a list of arguments, not {type(given).__name__}")
        refuse_integer_keys(given, where)
        tests.append({"args": given, "expected": wanted})
    return gradable_calls(tests, content.path)


def unwrapped(answers: list[Any]) -> list[Any]:
    """What a function is to return.

    The sets' grader takes an output `x` as well as `[x]` for an answer `[x]`. Most rows wrap every answer so; where all
    of them are lists of one, that one is what the function returns.
    """
    if all(isinstance(answer, list) and len(answer) == 1 for answer in answers):
        return [answer[0] for answer in answers]
    return answers
