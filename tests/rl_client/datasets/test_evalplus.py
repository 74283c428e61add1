"""HumanEval+ and MBPP+: the published suites, whose functions they call, and EvalPlus' own files without answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.contract import ProblemLimits, ScriptProblem, ScriptTest
from tests.rl_client.datasets.importing import FORMS, import_rows, verdicts
from tests.serving import Server

ASSERTION = "def assertion(out, exp, atol):\n    assert out == exp\n\n\n"
LOOP = "for i, (inp, exp) in enumerate(zip(inputs, results)):\n"
LISTS = "inputs = [[[1, 2]], [[]]]\nresults = [3, 0]\n"

CHECK = (
    ASSERTION
    + "def check(candidate):\n"
    + "".join(f"    {line}\n" for line in (LISTS + LOOP).splitlines())
    + "        assertion(candidate(*inp), exp, 0)\n"
)
CALLS = ASSERTION + LISTS + LOOP + "    assertion(total(*inp), exp, 0)\n"

HUMANEVAL: dict[str, Any] = {
    "task_id": "HumanEval/0",
    "prompt": "def total(numbers):\n",
    "canonical_solution": "    return sum(numbers)\n",
    "entry_point": "total",
    "test": CHECK,
}
MBPP: dict[str, Any] = {
    "task_id": 2,
    "code": "import math\ndef helper(x):\n  return x\ndef total(numbers):\n  return helper(sum(numbers))\n",
    "prompt": "Write a function to add numbers.",
    "source_file": "Benchmark Questions Verification V2.ipynb",
    "test_imports": [],
    "test_list": ["assert total([1, 2]) == 3", "assert total([]) == 0"],
    "test": CALLS,
}

SETS = [("humaneval-plus", HUMANEVAL), ("mbpp-plus", MBPP)]


def problem(script: str) -> ScriptProblem:
    return ScriptProblem(
        kind="script",
        runner="exec",
        entry_point="total",
        tests=(ScriptTest(script=script),),
        limits=ProblemLimits(cpu_s=60.0, memory_mb=4096),
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("preset", ["official", "strict"])
def test_the_suites_are_taken_whole(tmp_path: Path, form: str, preset: str) -> None:
    humaneval = import_rows("humaneval-plus", tmp_path, [HUMANEVAL], "--preset", preset, form=form)
    assert (humaneval.status, humaneval.problems) == (0, [problem(CHECK)])
    assert [(line["key"], line["labels"]) for line in humaneval.mapping] == [("HumanEval/0", {"function": "total"})]

    mbpp = import_rows("mbpp-plus", tmp_path, [MBPP], "--preset", preset, form=form)
    assert (mbpp.status, mbpp.problems) == (0, [problem(CALLS)])
    assert [(line["key"], line["labels"]) for line in mbpp.mapping] == [
        ("2", {"function": "total", "source_file": "Benchmark Questions Verification V2.ipynb"})
    ]


@pytest.mark.parametrize(("name", "row"), SETS)
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"test": ""}, ("no tests", "test: empty")),
        ({"test": None}, ("no tests", "test: empty")),
        ({"test": "total([1])\n"}, ("no tests", "test: asserts nothing")),
        ({"test": "# assert\ntotal([1])\n"}, ("no tests", "test: asserts nothing")),
        (
            {"test": "def chk(candidate):\n    assert candidate([1]) == 1\n"},
            ("no tests", "test: neither defines check nor uses total"),
        ),
        ({"test": "def check(candidate):\n    assert (\n"}, ("malformed", "test: no Python: ")),
        ({"test": "-" * 100_000 + "1"}, ("malformed", "test: no Python: ")),
        ({"test": 7}, ("malformed", "test: must be a string, not int")),
        ({"plus_input": [[[1]]]}, ("unsupported", "plus_input: inputs without answers")),
    ],
)
def test_what_is_no_problem_is_skipped(
    tmp_path: Path, name: str, row: dict[str, Any], change: dict[str, Any], reason: tuple[str, str]
) -> None:
    imported = import_rows(name, tmp_path, [row | change, row], form="jsonl")

    assert imported.status == 1
    ((fault, words),) = imported.reasons
    assert (fault, words[: len(reason[1])]) == reason
    assert [line["row"] for line in imported.mapping] == [1]


@pytest.mark.parametrize("name", [None, "", "a-b"])
def test_a_function_without_a_name_is_no_problem(tmp_path: Path, name: str | None) -> None:
    imported = import_rows("humaneval-plus", tmp_path, [HUMANEVAL | {"entry_point": name}], form="jsonl")
    assert imported.reasons == [("malformed", f"entry_point: no name of a function: {str(name)!r}")]


@pytest.mark.parametrize("change", [{"code": "x = 1\n"}, {"test_list": []}, {"code": None}])
def test_a_function_that_cannot_be_found_is_no_problem(tmp_path: Path, change: dict[str, Any]) -> None:
    imported = import_rows("mbpp-plus", tmp_path, [MBPP | change], form="jsonl")
    assert imported.reasons == [("malformed", "code: defines no function that test_list calls")]


@pytest.mark.jail
@pytest.mark.parametrize(("name", "row"), SETS)
def test_a_grader_judges_an_imported_row_by_its_suite(
    tmp_path: Path, grader: Server, name: str, row: dict[str, Any]
) -> None:
    programs = (
        "def total(numbers):\n    return sum(numbers)\n",
        "def total(numbers):\n    return len(numbers)\n",
        "import sys\nsys.exit(0)\n",
    )
    found = verdicts(name, tmp_path, row, grader.url, *programs)
    assert found[0] == "accepted"
    assert "accepted" not in found[1:]
