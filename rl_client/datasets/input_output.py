"""The column `input_output` of APPS, which TACO took over: stdin tests, or calls where it names a function."""

from __future__ import annotations

from typing import Any

from rl_client.datasets.calls import function_name, refuse_integer_keys
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
    inputs, outputs = content.items("inputs"), content.items("outputs")
    if len(inputs) != len(outputs):
        raise content.fault("inputs", f"{len(inputs)} of them, but {len(outputs)} outputs")
    if not inputs:
        raise RowError("no tests", f"{content.path}: no tests")
    if content.values.get("fn_name") is None:
        return {"kind": "stdio", "tests": _stdio(content, inputs, outputs)}
    name = function_name(content.values["fn_name"], content.where("fn_name"))
    return {"kind": "call", "tests": _calls(content, inputs, outputs), "function": name}


def _stdio(content: Row, inputs: list[Any], outputs: list[Any]) -> list[dict[str, str]]:
    tests = [
        {
            "input": _joined(given, content.where(f"inputs[{index}]")),
            "output": _joined(wanted, content.where(f"outputs[{index}]")),
        }
        for index, (given, wanted) in enumerate(zip(inputs, outputs, strict=True))
    ]
    return gradable(tests, content.path)


def _joined(value: Any, where: str) -> str:
    """A text, or a list of its lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise RowError("malformed", f"{where}: must be a string or a list of strings, not {type(value).__name__}")
    return value


def _calls(content: Row, inputs: list[Any], outputs: list[Any]) -> list[dict[str, Any]]:
    # The sets' grader takes an output `x` as well as `[x]` for an answer `[x]`. Most rows wrap every answer so; where
    # they all are lists of one, that one is what the function returns.
    wrapped = all(isinstance(wanted, list) and len(wanted) == 1 for wanted in outputs)
    tests = []
    for index, (given, wanted) in enumerate(zip(inputs, outputs, strict=True)):
        where = content.where(f"inputs[{index}]")
        if not isinstance(given, list):
            raise RowError("malformed", f"{where}: must be a list of arguments, not {type(given).__name__}")
        refuse_integer_keys(given, where)
        tests.append({"args": given, "expected": wanted[0] if wrapped else wanted})
    return tests
