"""Failure-conditioned training ("online-fixing" of arXiv 2605.28751): prompts that ask for the repair of a failed
program, and data sets of them.

A repair prompt z = phi(x, y) has the problem x, the failed program, statistics of its run and a short hint, and nothing
that was private: no inputs, outputs or names of tests, nothing that the program or a checker said. Numbers are rounded,
and sizes are powers of ten. What is said of an exception is its type, and of types those alone that languages come
with: a program could name a class of its own after its input. Exit statuses are left out for the same reason.

    scored = await scorer.score(completion, label, detail="outputs")   # else most exceptions go unnamed
    rollouts.append(Rollout.of(prompt, completion, scored))
    prompts, left_out = online_fixing(rollouts)                       # L_GRPO(x) + 1{r(y) = 0} L_GRPO(z)
    control, _ = online_fixing(rollouts, control="resample")          # the same budget, spent on x again

A reward that needs no more than the first failure lets the grader stop there: the tests behind it are told as not run.
Knows nothing of HTTP and of models: rollouts come in, rows go out.
"""

from __future__ import annotations

import builtins
import math
import re
import signal
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from rl_client.rewards import Reward, failing, is_fault, r_inf
from service.contract import FAULT_VERDICTS, FitRow, GradeResult, TestRow, Verdict
from service.extraction import extract

if TYPE_CHECKING:
    from rl_client.rollout import Scored

Label = TypeVar("Label")

# ---------------------------------------------------------------------------------------------------------------
# What may be told of a result


@dataclass(frozen=True, slots=True)
class SizeGroup:
    """The tests with 10^(k-1) <= input length < 10^k; those of k = 1 from 0 on."""

    k: int
    tests: int
    passed: int
    unrun: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a repair prompt may tell of a result: counts, words from closed lists, and rounded numbers."""

    tests: int
    passed: int
    groups: tuple[SizeGroup, ...]
    verdicts: tuple[tuple[str, int], ...]
    """How often each verdict other than accepted was given, the most frequent first."""
    first_failure: str | None
    """The verdict of the shortest failing test; `compile_error` where nothing was run."""
    first_failure_k: int | None
    """Its input is shorter than 10^k, and no shorter than 10^(k-1)."""
    exception: str | None
    """Type of the exception, or name of the signal, that ended the program there."""
    cpu_s: float | None
    cpu_limit_s: float | None
    """The most CPU time of a test, and what it may be."""
    memory_bytes: int | None
    memory_limit_bytes: int | None
    cpu_growth: FitRow | None
    """How CPU time grows with the input length."""


def statistics(result: GradeResult) -> Statistics:
    """What may be told of a result that is the program's own doing. Raises ValueError of a fault of the grader's."""
    if is_fault(result):
        raise ValueError(f"the grader failed at this program ({result.verdict}): there is nothing to tell of it")
    tests = result.tests
    first = next((test for test in failing(result) if _told(test) != Verdict.SKIPPED), None)
    verdicts = Counter(_told(test) for test in tests if test.verdict is not Verdict.ACCEPTED)
    limits = result.limits
    return Statistics(
        tests=len(tests),
        passed=sum(test.verdict is Verdict.ACCEPTED for test in tests),
        groups=_groups(tests),
        verdicts=tuple(verdicts.most_common()),
        first_failure=_told(first) if first is not None else _unrun(result),
        first_failure_k=len(str(first.input_length)) if first is not None else None,
        exception=_exception(first) if first is not None else None,
        cpu_s=_rounded(max((test.cpu_s for test in tests if test.cpu_s is not None), default=None)),
        cpu_limit_s=limits.cpu_s if limits is not None else None,
        memory_bytes=_whole(max((test.memory_bytes for test in tests if test.memory_bytes is not None), default=None)),
        memory_limit_bytes=limits.memory_bytes if limits is not None else None,
        cpu_growth=result.growth.cpu if result.growth is not None else None,
    )


def _told(test: TestRow) -> str:
    """The verdict, in words that are the program's business: it may have broken a checker, and that is a wrong answer;
    what the grader itself failed at was not run.
    """
    if test.provoked:
        return str(Verdict.WRONG_ANSWER)
    return str(Verdict.SKIPPED if test.verdict in FAULT_VERDICTS else test.verdict)


def _unrun(result: GradeResult) -> str | None:
    return None if result.category == "correct" else str(result.verdict)


def _groups(tests: Sequence[TestRow]) -> tuple[SizeGroup, ...]:
    sizes = Counter(len(str(test.input_length)) for test in tests)
    passed = Counter(len(str(test.input_length)) for test in tests if test.verdict is Verdict.ACCEPTED)
    unrun = Counter(len(str(test.input_length)) for test in tests if _told(test) == Verdict.SKIPPED)
    return tuple(SizeGroup(k, sizes[k], passed[k], unrun[k]) for k in sorted(sizes))


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2g}")


def _whole(value: float | None) -> int | None:
    return None if value is None else int(float(f"{value:.2g}"))


#: Types that come with their language; whatever else ends a program goes unnamed.
_PYTHON = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)
_OTHERS = frozenset(
    [f"std::{name}" for name in (
        "bad_alloc bad_array_new_length bad_cast bad_function_call bad_optional_access bad_variant_access domain_error "
        "invalid_argument length_error logic_error out_of_range overflow_error range_error regex_error runtime_error "
        "underflow_error"
    ).split()]
    + [f"java.lang.{name}" for name in (
        "ArithmeticException ArrayIndexOutOfBoundsException ArrayStoreException ClassCastException "
        "IllegalArgumentException IllegalStateException IndexOutOfBoundsException NegativeArraySizeException "
        "NullPointerException NumberFormatException OutOfMemoryError StackOverflowError "
        "StringIndexOutOfBoundsException UnsupportedOperationException"
    ).split()]
    + [f"java.util.{name}" for name in (
        "ConcurrentModificationException EmptyStackException InputMismatchException NoSuchElementException"
    ).split()]
    + "EvalError RangeError ReferenceError SyntaxError TypeError URIError".split()
)  # fmt: skip

#: What the kernel or a runtime ends a program with; it could send itself any other.
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS, signal.SIGILL)

#: How runtimes begin the line that names what ended the program.
_LAST_WORDS = (
    re.compile(r"^([A-Za-z]\w*)(?::|$)", re.M),
    re.compile(r"^terminate called after throwing an instance of '([\w:]+)'", re.M),
    re.compile(r'^Exception in thread "[^"]*" ([\w.]+)', re.M),
)
_RAISED = re.compile(r"raised (\w+)")


def _exception(test: TestRow) -> str | None:
    if test.verdict is not Verdict.RUNTIME_ERROR:
        return None
    raised = _RAISED.fullmatch(test.message)
    if raised is not None and raised[1] in _PYTHON:
        return raised[1]
    stderr = test.stderr_tail or ""
    named = [match for words in _LAST_WORDS for match in words.finditer(stderr) if match[1] in _PYTHON | _OTHERS]
    if named:
        return max(named, key=lambda match: match.start())[1]
    return next((one.name for one in _CRASHES if one == test.signal), None)


# ---------------------------------------------------------------------------------------------------------------
# The prompt

_VERDICTS = {
    "wrong_answer": "wrong answer",
    "time_limit": "time limit exceeded",
    "memory_limit": "memory limit exceeded",
    "output_limit": "output limit exceeded",
    "idle": "waited for more input than there is, or slept",
    "runtime_error": "runtime error",
    "compile_error": "does not compile",
    "skipped": "not run",
}

_HINTS = {
    "wrong_answer": "The logic is wrong for some inputs: look at edge cases before performance.",
    "time_limit": "It takes too long: look for an algorithm that grows more slowly, and for loops that do not end.",
    "memory_limit": "It needs too much memory: keep less of the data, or keep it in less space.",
    "output_limit": "It writes far too much: look for loops that print without an end, and for debugging output.",
    "idle": "It does not end by itself: read exactly the input that the problem describes.",
    "runtime_error": "It crashes for some inputs: look at bounds, recursion depth, divisions and conversions.",
    "compile_error": "It does not compile: mend that first.",
}


def repair_prompt(problem: str, program: str, result: GradeResult, *, language: str = "") -> str:
    """The prompt z = phi(x, y) that asks for the repair of `program`.

    `problem`: its statement, as the policy was shown it. `language`: the tag of the code fence. Raises ValueError where
    the result is a right program's, where it holds no program, and of a fault of the grader's.
    """
    told = statistics(result)
    if told.first_failure is None:
        raise ValueError("this program is right: there is nothing to repair")
    if told.first_failure == "format_error":
        raise ValueError("no program was found in this completion: there is nothing to repair")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", program)), default=0))
    lines = [
        problem.rstrip(),
        "",
        "The following program was submitted and is not accepted.",
        "",
        f"{fence}{language}",
        program.rstrip("\n"),
        fence,
        "",
        "What is known of its run on the hidden tests:",
        *(f"- {line}" for line in lines_of(told)),
        "",
        f"Hint: {_HINTS[told.first_failure]}",
        "",
        "Write a program that solves the problem. You may reuse parts of the program above, or write it anew. "
        "Answer with the whole program in one code block.",
    ]
    return "\n".join(lines) + "\n"


def feedback(result: GradeResult) -> str:
    """What a further turn is told of the answer before it: the repair prompt without what the model has seen already.

    Raises ValueError where the result is a right program's, and of a fault of the grader's.
    """
    told = statistics(result)
    if told.first_failure is None:
        raise ValueError("this program is right: there is nothing to repair")
    if told.first_failure == "format_error":
        return "No program was found in that answer. Answer with the whole program in one code block.\n"
    lines = [
        "The program is not accepted. What is known of its run on the hidden tests:",
        *(f"- {line}" for line in lines_of(told)),
        "",
        f"Hint: {_HINTS[told.first_failure]}",
        "",
        "Write a program that solves the problem. You may reuse parts of the one before, or write it anew. "
        "Answer with the whole program in one code block.",
    ]
    return "\n".join(lines) + "\n"


def lines_of(told: Statistics) -> list[str]:
    """The statistics in sentences."""
    if told.first_failure == "compile_error":
        return ["it does not compile, so no test was run"]
    lines = [f"{told.passed} of {told.tests} tests passed"]
    for group in told.groups:
        low = "0" if group.k == 1 else f"10^{group.k - 1}"
        words = [f"{group.passed} of {group.tests} passed"] if group.unrun < group.tests else []
        words += [f"{group.unrun} not run"] if group.unrun else []
        lines.append(f"input length from {low} to below 10^{group.k}: {', '.join(words)}")
    if told.first_failure is not None:
        lines.append("the others: " + ", ".join(f"{count} {_VERDICTS[name]}" for name, count in told.verdicts))
        cause = f" ({told.exception})" if told.exception is not None else ""
        failure = f"{_VERDICTS[told.first_failure]}{cause}"
        lines.append(f"the smallest failing input is shorter than 10^{told.first_failure_k}: {failure}")
    if told.cpu_s is not None and told.cpu_limit_s is not None:
        lines.append(f"CPU time: {told.cpu_s:g} s at most, with a limit of {told.cpu_limit_s:g} s")
    if told.memory_bytes is not None and told.memory_limit_bytes is not None:
        used, most = told.memory_bytes / 2**20, told.memory_limit_bytes / 2**20
        lines.append(f"memory: {used:.1f} MiB at most, with a limit of {most:g} MiB")
    if told.cpu_growth is not None:
        lines.append(_growth(told.cpu_growth))
    return lines


def _growth(fit: FitRow) -> str:
    if fit.exponent is not None:
        words = f"CPU time grows about as n^{fit.exponent:.1f} with the input length n"
    else:
        words = "CPU time grows exponentially with the input length"
    if fit.limit_length is None:
        return words
    return f"{words}, and meets its limit at a length of about {_length(fit.limit_length)}"


def _length(value: int) -> str:
    """To one figure: 60, 2000, 3*10^6."""
    power = int(math.log10(value)) if value else 0
    first = round(value / 10**power)
    return str(first * 10**power) if power < 5 else f"{first}*10^{power}"


# ---------------------------------------------------------------------------------------------------------------
# The data set


@dataclass(frozen=True, slots=True)
class Rollout(Generic[Label]):
    """One answer of the current policy, graded."""

    prompt: str
    """The problem, as the policy was shown it."""
    label: Label
    """What its answer is graded by; goes to the repair as it is."""
    program: str | None
    """What was taken from the answer; None where there was nothing."""
    result: GradeResult

    @staticmethod
    def of(prompt: str, completion: str, scored: Scored, *, names: Collection[str] = ()) -> Rollout[str]:
        """An answer that was scored, with the program that the grader took from it. Its label goes on as JSON text.

        `names`: what its language goes by beside what the label calls it (`LanguageRow.aliases`), where that label
        takes a program by the tag of its fence.
        """
        label = scored.label
        known = {name.lower() for name in (label.language, *names)}
        program = extract(label.answer(completion), label.extraction, known)
        return Rollout(prompt, label.model_dump_json(exclude_none=True), program, scored.result)


@dataclass(frozen=True, slots=True)
class RepairRow(Generic[Label]):
    """One prompt to be rolled out. The graph is cut before it: it is no second turn of the rollout that failed."""

    prompt: str
    label: Label
    source: int
    """Which of the rollouts it comes from, from 0: repairs of one failure are counted together in fix@k."""


def online_fixing(
    rollouts: Iterable[Rollout[Label]],
    *,
    reward: Reward = r_inf,
    control: Literal["fix", "resample"] = "fix",
    language: str = "",
) -> tuple[list[RepairRow[Label]], Counter[str]]:
    """The second term of E[L(x)] + E[1{r(y) = 0} L(z)], Eq. (8) of arXiv 2605.28751: a row for each rollout that
    failed.

    A rollout failed where `reward` is 0 or less. With `control="resample"` the row is x again: as many, of the same
    problems, so that what repairs add is told from what more samples add. Also returned: how many rollouts were left
    out, by reason: `passed`, `no_reward` (the grader failed, or the reward's group is empty), `no_program` (there is
    nothing to repair, and the control leaves them out, too). Raises ValueError of another `control`, and where `reward`
    needs every test and a result has skipped ones.
    """
    rows: list[RepairRow[Label]] = []
    left_out: Counter[str] = Counter()
    for index, one in enumerate(rollouts):
        value = None if is_fault(one.result) else reward(one.result)
        if value is None:
            left_out["no_reward"] += 1
        elif value > 0 or one.result.category == "correct":
            left_out["passed"] += 1
        elif one.program is None or one.result.category == "format_error":
            left_out["no_program"] += 1
        elif control == "fix":
            prompt = repair_prompt(one.prompt, one.program, one.result, language=language)
            rows.append(RepairRow(prompt, one.label, index))
        elif control == "resample":
            rows.append(RepairRow(one.prompt, one.label, index))
        else:
            raise ValueError(f"the control is fix or resample, not {control!r}")
    return rows, left_out
