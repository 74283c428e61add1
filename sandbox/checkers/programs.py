"""Checkers that are programs: what each protocol gives its checker, and what the checker's end means.

    testlib   `checker input output answer`; exit status; its word on stderr (Codeforces, Polygon, CodeContests+)
    kattis    `validator input answer feedback/ [flag ...]`, the output on stdin; 42 or 43 (ICPC package format)
    python    `checker.py input answer output`; prints 1 (open-r1/codeforces)

Pure: from the account of a finished run to a CheckerOutcome. Whatever a protocol does not foresee (a crash, a limit,
another exit status) is the checker's own fault, `checker_error`, and never the program's. Knows nothing of cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sandbox.checkers.base import CheckerOutcome, CheckerProtocol, Partial, Scoring
from sandbox.problem import Limits
from sandbox.testlib import PARTIAL_BASE
from sandbox.verdicts import Evidence, Verdict

#: How much of a checker's word is kept.
MESSAGE_BYTES = 4096

#: The folder that a Kattis validator leaves its feedback in, and what is read of it.
FEEDBACK = "feedback"
JUDGE_MESSAGE = f"{FEEDBACK}/judgemessage.txt"
SCORE = f"{FEEDBACK}/score.txt"
SCORE_MULTIPLIER = f"{FEEDBACK}/score_multiplier.txt"

#: Where a validator leaves the input of the next pass.
NEXT_PASS = f"{FEEDBACK}/nextpass.in"

#: More points than this are a mistake; shares of them stay finite numbers.
MOST_POINTS = 1e15

#: The x of testlib's `_pc(x)` for a right answer: it counts percent.
PARTIAL_FULL = 100

KATTIS_ACCEPTED = 42
KATTIS_REJECTED = 43


@dataclass(frozen=True, slots=True)
class CheckerRun:
    """The account of one finished run of a checker; texts are cut to MESSAGE_BYTES."""

    evidence: Evidence
    limits: Limits
    stdout: bytes = b""
    stderr: bytes = b""
    files: Mapping[str, bytes] | None = None
    """What it left in the folders of its protocol, by name."""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths at which a checker finds what it is to look at."""

    input: str
    output: str
    answer: str
    feedback: str


@dataclass(frozen=True, slots=True)
class Rules:
    """One protocol."""

    arguments: Callable[[Places], tuple[str, ...]]
    outcome: Callable[[CheckerRun, Scoring], CheckerOutcome]
    output_on_stdin: bool = False
    directories: tuple[str, ...] = ()
    """Made for it; what it leaves there is collected."""


def _testlib(run: CheckerRun, scoring: Scoring) -> CheckerOutcome:
    status, said = run.evidence.exit_code, _text(run.stderr)
    if status == 0:
        return CheckerOutcome(Verdict.ACCEPTED, said)
    if status == 1:
        return CheckerOutcome(Verdict.WRONG_ANSWER, said)
    if status == 2:
        return CheckerOutcome(Verdict.WRONG_ANSWER, f"presentation error: {said}")
    if status == 8:
        return CheckerOutcome(Verdict.WRONG_ANSWER, f"unexpected end of output: {said}")
    if status == 7:
        match = re.match(r"\s*points\s+(\S+)", said)
        points = None if match is None else _number(match.group(1))
        if points is None:
            return _fault(f"exited with status 7 and said no points: {said}")
        return _scored(points / scoring.full_score, scoring, said)
    match = re.match(r"partially correct \((\d{1,3})\)", said)
    # Its word too: such a status alone may be that of a checker which failed in a way of its own.
    if match is not None and status == PARTIAL_BASE + int(match.group(1)):
        return _scored(int(match.group(1)) / PARTIAL_FULL, scoring, said)
    if status == 3:
        return _fault(f"gave up: {said}")
    return _fault(f"exited with status {status}: {said}")


def _kattis(run: CheckerRun, scoring: Scoring) -> CheckerOutcome:
    files = run.files or {}
    status, said = run.evidence.exit_code, _text(files.get(JUDGE_MESSAGE) or run.stderr)
    if status not in (KATTIS_ACCEPTED, KATTIS_REJECTED):
        return _fault(f"exited with status {status}, which is neither 42 nor 43: {said}")
    scores = [name for name in (SCORE, SCORE_MULTIPLIER) if name in files]
    if not scores:
        verdict = Verdict.ACCEPTED if status == KATTIS_ACCEPTED else Verdict.WRONG_ANSWER
        return CheckerOutcome(verdict, said)
    if status == KATTIS_REJECTED or len(scores) > 1:
        return _fault(f"left {' and '.join(scores)} and exited with status {status}: {said}")
    score = _number(_text(files[scores[0]]))
    if score is None:
        return _fault(f"left a {scores[0]} that holds no number: {_text(files[scores[0]])}")
    share = score / scoring.full_score if scores == [SCORE] else score
    return CheckerOutcome(Verdict.ACCEPTED, said, share)


def _python(run: CheckerRun, scoring: Scoring) -> CheckerOutcome:
    status, printed, said = run.evidence.exit_code, _text(run.stdout), _text(run.stderr)
    if status != 0:
        return _fault(f"exited with status {status}: {said}")
    score = _number(printed)
    if printed == "1":
        return CheckerOutcome(Verdict.ACCEPTED, said)
    if printed == "" or score == 0:
        return CheckerOutcome(Verdict.WRONG_ANSWER, said)
    if score is not None and 0 < score <= 1:
        return _scored(score, scoring, said)
    return _fault(f"printed neither 1 nor 0: {printed}")


RULES: Mapping[CheckerProtocol, Rules] = {
    CheckerProtocol.TESTLIB: Rules(lambda at: (at.input, at.output, at.answer), _testlib),
    CheckerProtocol.KATTIS: Rules(
        lambda at: (at.input, at.answer, at.feedback),
        _kattis,
        output_on_stdin=True,
        directories=(FEEDBACK,),
    ),
    CheckerProtocol.PYTHON: Rules(lambda at: (at.input, at.answer, at.output), _python),
}


def outcome(protocol: CheckerProtocol, run: CheckerRun, scoring: Scoring) -> CheckerOutcome:
    """What the checker's end means."""
    return limit_fault(run) or RULES[protocol].outcome(run, scoring)


def limit_fault(run: CheckerRun) -> CheckerOutcome | None:
    """The fault of a run that a limit or a signal ended, whatever its protocol; None for one that exited."""
    evidence, limits = run.evidence, run.limits
    if evidence.over_memory:
        return _fault(f"needed more than {limits.memory_bytes >> 20} MiB")
    if evidence.over_cpu:
        return _fault(f"used more than {limits.cpu_s:g} s of CPU time")
    if evidence.over_wall:
        return _fault(f"had not ended after {limits.effective_wall_s:g} s")
    if evidence.over_output:
        return _fault(f"wrote more than {limits.output_bytes / 2**20:g} MiB to one file")
    if evidence.signal is not None:
        return _fault(f"died of signal {evidence.signal}: {_text(run.stderr)}")
    return None


def _scored(share: float, scoring: Scoring, said: str) -> CheckerOutcome:
    match scoring.partial:
        case Partial.REJECT:
            accepted = False
        case Partial.ACCEPT:
            accepted = share > 0
        case Partial.SCORE:
            accepted = share >= 1
    return CheckerOutcome(Verdict.ACCEPTED if accepted else Verdict.WRONG_ANSWER, said, share)


def _fault(what: str) -> CheckerOutcome:
    return CheckerOutcome(Verdict.CHECKER_ERROR, f"the checker {what}".rstrip(": \n"))


def _number(text: str) -> float | None:
    """A decimal number, or None; also for one that is no score by any measure."""
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text, re.ASCII):
        return None
    value = float(text)
    return value if abs(value) <= MOST_POINTS else None


def _text(data: bytes) -> str:
    return data[:MESSAGE_BYTES].decode("utf-8", "replace").strip()
