"""Repair prompts: what they tell, what never gets into them, and data sets of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rl_client.client import Grader
from rl_client.labels import parse_label
from rl_client.repair import RepairRow, Rollout, lines_of, online_fixing, repair_prompt, statistics
from rl_client.rewards import r_k
from rl_client.rollout import Scored
from service.contract import (
    CompileRow,
    FitRow,
    GradeRequest,
    GradeResult,
    GrowthRow,
    KattisChecker,
    PointRow,
    ProblemLimits,
    StdioProblem,
    StdioTest,
    Verdict,
)
from tests.rl_client.results import PROBLEM, graded, provoked, unrun
from tests.serving import Server

AC = Verdict.ACCEPTED
WA = Verdict.WRONG_ANSWER
TLE = Verdict.TIME_LIMIT
RE = Verdict.RUNTIME_ERROR
SKIP = Verdict.SKIPPED

QUADRATIC = FitRow(
    model="power",
    exponent=2.04,
    exponent_low=1.9,
    exponent_high=2.18,
    doubling_length=None,
    limit_length=61_234,
    tests=4,
)
SLOW = graded(
    (4, AC), (30, AC), (50, AC), (700, AC), (80_000, TLE), (90_000, TLE), cpu_s=(0.01, 0.01, 0.01, 0.0234, 2.01, 2.02)
).model_copy(update={"growth": GrowthRow(cpu=QUADRATIC, memory=None)})


def with_first(result: GradeResult, **fields: object) -> GradeResult:
    """The same with these fields of its first test."""
    return result.model_copy(update={"tests": (result.tests[0].model_copy(update=fields), *result.tests[1:])})


def test_a_prompt_as_a_whole() -> None:
    assert repair_prompt("Add two numbers.\n", "print(1)\n", SLOW, language="python") == (
        "Add two numbers.\n"
        "\n"
        "The following program was submitted and is not accepted.\n"
        "\n"
        "```python\n"
        "print(1)\n"
        "```\n"
        "\n"
        "What is known of its run on the hidden tests:\n"
        "- 4 of 6 tests passed\n"
        "- input length from 0 to below 10^1: 1 of 1 passed\n"
        "- input length from 10^1 to below 10^2: 2 of 2 passed\n"
        "- input length from 10^2 to below 10^3: 1 of 1 passed\n"
        "- input length from 10^4 to below 10^5: 0 of 2 passed\n"
        "- the others: 2 time limit exceeded\n"
        "- the smallest failing input is shorter than 10^5: time limit exceeded\n"
        "- CPU time: 2 s at most, with a limit of 2 s\n"
        "- memory: 8.0 MiB at most, with a limit of 256 MiB\n"
        "- CPU time grows about as n^2.0 with the input length n, and meets its limit at a length of about 60000\n"
        "\n"
        "Hint: It takes too long: look for an algorithm that grows more slowly, and for loops that do not end.\n"
        "\n"
        "Write a program that solves the problem. You may reuse parts of the program above, or write it anew. "
        "Answer with the whole program in one code block.\n"
    )


def test_a_program_with_fences_stays_in_its_own() -> None:
    prompt = repair_prompt("P", "# ```\n# ````\n", SLOW)
    assert "\n`````\n# ```\n# ````\n`````\n" in prompt


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"message": "raised KeyError"}, "KeyError"),
        ({"message": "raised Secret4711"}, None),
        ({"stderr_tail": "Traceback ...\n  File \"x\", line 1\nValueError: invalid literal: '4711'\n"}, "ValueError"),
        (
            {"stderr_tail": "KeyError: 1\n\nDuring handling ...\n\nZeroDivisionError: division by zero\n"},
            "ZeroDivisionError",
        ),
        ({"stderr_tail": "Secret4711: no\n"}, None),
        ({"stderr_tail": "module.Secret4711\nRecursionError\n"}, "RecursionError"),
        (
            {
                "stderr_tail": "terminate called after throwing an instance of 'std::out_of_range'\n  what(): 4711",
                "signal": 6,
            },
            "std::out_of_range",
        ),
        ({"stderr_tail": "terminate called after throwing an instance of 'Secret4711'\n", "signal": 6}, "SIGABRT"),
        (
            {"stderr_tail": 'Exception in thread "main" java.lang.ArithmeticException: / by zero\n\tat Main.main'},
            "java.lang.ArithmeticException",
        ),
        ({"stderr_tail": "TypeError: x is undefined\n    at Object.<anonymous>"}, "TypeError"),
        ({"signal": 11}, "SIGSEGV"),
        ({"signal": 10}, None),
        ({"exit_code": 47}, None),
    ],
)
def test_only_types_that_languages_come_with_are_named(fields: dict[str, object], named: str | None) -> None:
    result = with_first(graded((4, RE), (30, AC)), **fields)
    assert statistics(result).exception == named
    assert "4711" not in repair_prompt("P", "x", result)


def test_an_exception_is_that_of_the_smallest_failing_input() -> None:
    first, second = graded((4, WA), (30, RE)).tests
    result = graded((4, WA), (30, RE)).model_copy(
        update={"tests": (first, second.model_copy(update={"stderr_tail": "KeyError: 1\n"}))}
    )
    assert statistics(result).exception is None


def test_a_program_that_does_not_compile() -> None:
    prompt = repair_prompt("P", "x", unrun("compile_error", 4, 30))
    assert "- it does not compile, so no test was run\n\nHint: It does not compile: mend that first.\n" in prompt


def test_breaking_the_checker_reads_as_a_wrong_answer() -> None:
    told = lines_of(statistics(provoked(4, 30)))
    assert told[3:5] == [
        "the others: 1 wrong answer, 1 not run",
        "the smallest failing input is shorter than 10^1: wrong answer",
    ]


def test_tests_behind_the_first_failure_are_not_failures() -> None:
    assert "the others: 1 wrong answer, 2 not run" not in lines_of(statistics(graded((4, WA), (30, SKIP))))
    told = lines_of(statistics(graded((4, WA), (5, SKIP), (30, SKIP))))
    assert told[1:4] == [
        "input length from 0 to below 10^1: 0 of 2 passed, 1 not run",
        "input length from 10^1 to below 10^2: 1 not run",
        "the others: 2 not run, 1 wrong answer",
    ]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (graded((4, AC)), "this program is right"),
        (unrun("format_error", 4), "no program was found"),
        (graded((4, WA), (30, Verdict.INTERNAL_ERROR)), "the grader failed"),
    ],
)
def test_what_there_is_nothing_to_repair_of(result: GradeResult, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        repair_prompt("P", "x", result)


def test_an_exponential_in_words() -> None:
    fit = QUADRATIC.model_copy(
        update={"model": "exponential", "exponent": None, "doubling_length": 1.0, "limit_length": 27}
    )
    told = lines_of(statistics(SLOW.model_copy(update={"growth": GrowthRow(cpu=fit, memory=None)})))
    assert told[-1] == "CPU time grows exponentially with the input length, and meets its limit at a length of about 30"


# ---------------------------------------------------------------------------------------------------------------
# Nothing private

SECRET = "hunter2-4711"
#: Texts that say something by being what they are, which no program chooses.
CLOSED = {"verdict", "category", "taxonomy", "scoring", "problem_id", "model"}


def poisoned(value: Any, field: str = "") -> Any:
    """The same result with the secret in every text that is not a word from a closed list, and in every free number."""
    match value:
        case dict():
            return {name: poisoned(one, name) for name, one in value.items()}
        case list():
            return [poisoned(one, field) for one in value]
        case str() | None if field not in CLOSED and field in TEXTS:
            return f"KeyError: {SECRET}\n{SECRET}\n"
    return 47110815 if field in ("exit_code", "score") else value


TEXTS = {
    "id", "name", "language", "message", "stdout_tail", "stderr_tail", "output_tail", "checker_message", "group",
    "version", "sandbox", "language_version",
}  # fmt: skip


def texts(schema: dict[str, Any]) -> Iterator[str]:
    """Every field of a result, at any depth, that can hold any text."""
    for model in [schema, *schema["$defs"].values()]:
        for name, field in model.get("properties", {}).items():
            kinds = [field, *field.get("anyOf", [])]
            if any(kind.get("type") == "string" and "enum" not in kind and "const" not in kind for kind in kinds):
                yield name


def test_every_text_of_a_result_is_poisoned_below() -> None:
    assert set(texts(GradeResult.model_json_schema())) - CLOSED == TEXTS


@pytest.mark.parametrize("verdict", [WA, TLE, RE, Verdict.MEMORY_LIMIT, Verdict.OUTPUT_LIMIT, Verdict.IDLE])
def test_nothing_that_a_result_holds_in_words_gets_into_a_prompt(verdict: Verdict) -> None:
    fields = {
        "compile": CompileRow(ok=True, cpu_s=0.1, cached=False, message="warning"),
        "point_groups": (PointRow(group="g", scoring="sum", tests=1, points=1.0, max_points=2.0),),
        "growth": GrowthRow(cpu=QUADRATIC, memory=None),
    }
    result = graded((4, verdict), (30, AC), **fields)
    bad = GradeResult.model_validate(poisoned(result.model_dump(mode="json")))
    assert json.dumps(bad.model_dump(mode="json")).count(SECRET) > 20

    prompt = repair_prompt("P", "x", bad)

    assert SECRET not in prompt
    assert "hunter" not in prompt
    assert "47110815" not in prompt
    assert "KeyError" not in prompt or verdict is RE


LEAKS = [
    "raise ValueError(text)",
    "raise type(text, (Exception,), {})(text)",
    "raise type('KeyError', (Exception,), {'__str__': lambda self: text})()",
    "print(text, file=sys.stderr); sys.exit(47)",
    "print('KeyError', text, file=sys.stderr); sys.exit(1)",
    "sys.exit(text)",
    "print(text)",
    "print(text); print('x' * 2**21)",
    "open(text, 'w').close(); os.kill(os.getpid(), 40)",
    "exec(compile(text, text, 'exec'))",
    "while True: pass",
    "kept = [text * 2**22 for _ in range(100)]; print(len(kept))",
]

QUOTING = """
import sys
sys.stderr.write(open(sys.argv[1]).read())
open(sys.argv[3] + "/judgemessage.txt", "w").write(open(sys.argv[2]).read())
sys.exit(43)
"""


@pytest.mark.jail
@pytest.mark.parametrize("leak", LEAKS)
def test_no_real_program_gets_its_input_into_a_prompt(grader: Server, leak: str) -> None:
    """The program tries to, the test's name and the checker's words hold it as well; `detail` asks for all there is."""
    secret = "hunter2x4711"
    problem = StdioProblem(
        kind="stdio",
        tests=tuple(
            StdioTest(input=f"{secret}{'y' * size}\n", output=f"{secret}\n", name=f"{secret} {size}")
            for size in (0, 90, 900)
        ),
        checker=KattisChecker(type="kattis", language="python", source=QUOTING),
        limits=ProblemLimits(cpu_s=0.3, memory_mb=64, output_mb=1),
    )
    source = f"import os, sys\ntext = input().partition('y')[0]\n{leak}\n"
    request = GradeRequest(problem=problem, language="python", source=source, detail="outputs", id=secret)
    with Grader(grader.url) as client:
        result = client.grade(request)
    assert result.category not in (None, "correct"), result.tests[0]
    assert secret in result.model_dump_json()

    prompt = repair_prompt("P", source, result, language="python")
    assert secret not in prompt


# ---------------------------------------------------------------------------------------------------------------
# Data sets

ROLLOUTS = [
    Rollout("x0", "a", "right", graded((4, AC), (30, AC))),
    Rollout("x0", "a", "slow", graded((4, AC), (30, TLE))),
    Rollout("x1", "b", "wrong", graded((4, WA), (30, AC))),
    Rollout("x1", "b", None, unrun("format_error", 4, 30)),
    Rollout("x2", "c", "faulty", graded((4, AC), (30, Verdict.INTERNAL_ERROR))),
    Rollout("x2", "c", "empty", graded((400, WA))),
    Rollout("x3", "d", "broken", unrun("compile_error", 4)),
]


def test_online_fixing_asks_for_the_repair_of_each_failure() -> None:
    rows, left_out = online_fixing(ROLLOUTS, language="python")

    assert [(row.label, row.source) for row in rows] == [("a", 1), ("b", 2), ("c", 5), ("d", 6)]
    assert left_out == {"passed": 1, "no_program": 1, "no_reward": 1}
    for row in rows:
        failed = ROLLOUTS[row.source]
        assert failed.program is not None
        assert row.prompt == repair_prompt(failed.prompt, failed.program, failed.result, language="python")


def test_the_control_spends_the_same_budget_on_the_same_problems() -> None:
    fixes, left_out = online_fixing(ROLLOUTS)
    rows, also_left_out = online_fixing(ROLLOUTS, control="resample")

    assert rows == [RepairRow(ROLLOUTS[fix.source].prompt, fix.label, fix.source) for fix in fixes]
    assert left_out == also_left_out


def test_what_failed_is_the_rewards_to_say() -> None:
    rows, left_out = online_fixing(ROLLOUTS, reward=r_k(1))
    assert [row.source for row in rows] == [2, 6]
    assert left_out == {"passed": 2, "no_program": 1, "no_reward": 2}


@pytest.mark.parametrize(
    ("fields", "completion", "names", "program"),
    [
        ({}, "A draft:\n```python\nprint(1)\n```\nNo:\n```python\nprint(2)\n```", (), "print(2)\n"),
        ({"extraction": "first_fence"}, "```\nprint(1)\n```\n```\nprint(2)\n```", (), "print(1)\n"),
        ({"extraction": "tagged"}, "```Python\nprint(1)\n```\n```text\n2\n```", (), "print(1)\n"),
        ({"extraction": "tagged"}, "```py3\nprint(1)\n```", (), None),
        ({"extraction": "tagged"}, "```py3\nprint(1)\n```", ("PY3",), "print(1)\n"),
        ({}, "I cannot.", (), None),
        ({}, "```python\nprint('\ud800')\n```", (), "print('?')\n"),
    ],
)
def test_a_rollout_of_an_answer_that_was_scored(
    fields: dict[str, object], completion: str, names: tuple[str, ...], program: str | None
) -> None:
    label = parse_label({"problem": PROBLEM, "scale": [-1.0, 2.0], "limits": {"cpu_s": 2.0}, **fields})
    result = graded((4, AC), (30, WA))
    rollout = Rollout.of("x", completion, Scored(-1.0, result, label), names=names)

    assert (rollout.prompt, rollout.program, rollout.result) == ("x", program, result)
    assert parse_label(rollout.label) == label


def test_a_control_that_is_none() -> None:
    with pytest.raises(ValueError, match="the control is fix or resample"):
        online_fixing(ROLLOUTS, control="none")  # type: ignore[arg-type]
