"""Who decides when a program and its interactor end: the table of causes and clocks, and what is taken for a cause."""

from __future__ import annotations

import signal

import pytest

from sandbox.conversation import (
    MARGIN_S,
    First,
    InteractorEnd,
    ProgramEnd,
    lost_program,
    read_past_end,
    settle,
    who_was_first,
    wrote_to_nobody,
)
from sandbox.verdicts import LIMIT_VERDICTS, Evidence, Verdict

A, W, R, C = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR, Verdict.CHECKER_ERROR
T, M, O, I = Verdict.TIME_LIMIT, Verdict.MEMORY_LIMIT, Verdict.OUTPUT_LIMIT, Verdict.IDLE  # noqa: E741

LONG = 10 * MARGIN_S
SHORT = MARGIN_S / 2

PROGRAM, INTERACTOR, NEITHER = First.PROGRAM, First.INTERACTOR, First.NEITHER


def program(failure: Verdict | None, at: float = 1.0, **fields: float | bool) -> ProgramEnd:
    return ProgramEnd(failure, at, **fields)  # type: ignore[arg-type]


def interactor(verdict: Verdict, at: float = 1.0, **fields: bool) -> InteractorEnd:
    return InteractorEnd(verdict, at, **fields)


TABLE = [
    # A clean program: the interactor's word, whoever was first.
    (program(None, 1), interactor(A, 1 + LONG), A, PROGRAM),
    (program(None, 1 + LONG), interactor(A, 1), A, INTERACTOR),
    (program(None, 1), interactor(W, 1 + LONG), W, PROGRAM),
    (program(None, 1 + LONG), interactor(W, 1), W, INTERACTOR),
    (program(None, 1), interactor(C, 1 + LONG), C, PROGRAM),
    (program(None, 1 + LONG), interactor(C, 1, over_limit=True), C, INTERACTOR),
    # The interactor fell over the program's going.
    (program(None, 1), interactor(C, 1 - SHORT, lost_program=True), W, PROGRAM),
    (program(R, 1), interactor(C, 1 - LONG, lost_program=True), R, PROGRAM),
    (program(T, 1, stopped_at=0.9), interactor(C, 1, lost_program=True), T, PROGRAM),
    (program(I, 1, stopped_at=0.9), interactor(C, 1, lost_program=True), I, PROGRAM),
    # SIGPIPE and its like: the interactor had gone, whatever the clocks say.
    (program(R, 1, wrote_to_nobody=True), interactor(W, 1 + LONG), W, INTERACTOR),
    (program(R, 1, wrote_to_nobody=True), interactor(A, 1), A, INTERACTOR),
    (program(R, 1, wrote_to_nobody=True), interactor(C, 1 - SHORT), C, INTERACTOR),
    # Reading on after a rejection is no failure of its own; after an acceptance it is.
    (program(R, 1, read_past_end=True), interactor(W, 1 + SHORT), W, INTERACTOR),
    (program(R, 1, read_past_end=True), interactor(A, 1 - LONG), R, INTERACTOR),
    (program(R, 1, read_past_end=True), interactor(C, 1 + SHORT), C, INTERACTOR),
    # Crashes, by the clocks; too close to tell, a rejection may well be of the end that the crash made.
    (program(R, 1), interactor(W, 1 + LONG), R, PROGRAM),
    (program(R, 1 + LONG), interactor(W, 1), W, INTERACTOR),
    (program(R, 1), interactor(W, 1 + SHORT), R, NEITHER),
    (program(R, 1), interactor(W, 1 - SHORT), R, NEITHER),
    (program(R, 1), interactor(C, 1 + LONG), R, PROGRAM),
    (program(R, 1 + LONG), interactor(C, 1), C, INTERACTOR),
    (program(R, 1), interactor(C, 1 + SHORT), C, NEITHER),
    (program(R, 1 + LONG), interactor(A, 1), R, INTERACTOR),
    # A program that was stopped at a limit was alive until then, to the millisecond.
    (program(T, 1 + LONG, stopped_at=1), interactor(W, 1 + SHORT), T, PROGRAM),
    (program(T, 1, stopped_at=1), interactor(W, 1 - SHORT), W, INTERACTOR),
    (program(I, 1 + LONG, stopped_at=1), interactor(W, 1 + SHORT), I, PROGRAM),
    (program(I, 1, stopped_at=1), interactor(W, 0.1), W, INTERACTOR),
    (program(I, 1, stopped_at=1), interactor(A, 0.1), I, INTERACTOR),
    (program(T, 1, stopped_at=1), interactor(C, 0.1), C, INTERACTOR),
    (program(I, 1, stopped_at=1), interactor(C, 0.1), C, INTERACTOR),
    (program(I, 1, stopped_at=1), interactor(C, 1 + SHORT), I, PROGRAM),
    # It waited for an interactor that was busy with itself.
    (program(I, 1, stopped_at=1), interactor(C, 9, over_limit=True), C, PROGRAM),
    (program(T, 1, stopped_at=1), interactor(C, 9, over_limit=True), T, PROGRAM),
    # Limits that the kernel enforces leave no such moment.
    (program(M, 1), interactor(W, 1 + SHORT), M, NEITHER),
    (program(O, 1), interactor(W, 1 - SHORT), O, NEITHER),
    (program(M, 1 + LONG), interactor(W, 1), W, INTERACTOR),
    (program(M, 1), interactor(C, 1 + LONG), M, PROGRAM),
]


@pytest.mark.parametrize(("one", "other", "verdict", "first"), TABLE)
def test_the_table(one: ProgramEnd, other: InteractorEnd, verdict: Verdict, first: First) -> None:
    assert (settle(one, other), who_was_first(one, other)) == (verdict, first)


def every_end() -> list[tuple[ProgramEnd, InteractorEnd]]:
    moments = (1 - LONG, 1 - SHORT, 1, 1 + SHORT, 1 + LONG)
    ends = [program(failure, 1) for failure in (None, R, T, M, O, I)]
    ends += [program(failure, 1 + SHORT, stopped_at=1) for failure in (T, I)]
    ends += [program(R, 1, wrote_to_nobody=True), program(R, 1, read_past_end=True)]
    others = [interactor(verdict, at) for verdict in (A, W, C) for at in moments]
    others += [interactor(C, at, over_limit=True) for at in moments]
    others += [interactor(C, at, lost_program=True) for at in moments]
    return [(one, other) for one in ends for other in others]


def test_nothing_is_accepted_that_the_interactor_did_not_accept() -> None:
    assert all(other.verdict is A for one, other in every_end() if settle(one, other) is A)


def test_a_limit_failure_is_never_made_up() -> None:
    for one, other in every_end():
        if (verdict := settle(one, other)) in LIMIT_VERDICTS:
            assert verdict is one.failure


def test_the_graders_fault_is_never_made_up() -> None:
    assert all(other.verdict is C for one, other in every_end() if settle(one, other) is C)


# ---------------------------------------------------------------------------------------------------------------
# Causes


def ended(status: int) -> Evidence:
    """As `Popen.returncode` has it: negative for a signal."""
    died = status < 0
    return Evidence(False, False, False, False, None if died else status, -status if died else None)


@pytest.mark.parametrize(
    ("status", "stderr", "cause"),
    [
        (-signal.SIGPIPE, b"", True),
        (-signal.SIGSEGV, b"Broken pipe", False),
        (1, b"Traceback (most recent call last):\n  ...\nBrokenPipeError: [Errno 32] Broken pipe\n", True),
        (120, b"Exception ignored in: <_io.TextIOWrapper name='<stdout>'>\nBrokenPipeError: [Errno 32]\n", True),
        (101, b"thread 'main' panicked: failed printing to stdout: Broken pipe (os error 32)\n", True),
        (1, b"Error: write EPIPE\n    at afterWriteDispatched\n", True),
        (1, b"ZeroDivisionError: division by zero\n", False),
        (0, b"Broken pipe", False),
    ],
)
def test_what_is_taken_for_writing_to_nobody(status: int, stderr: bytes, cause: bool) -> None:
    assert wrote_to_nobody(ended(status), stderr) is cause


@pytest.mark.parametrize(
    ("status", "stderr", "cause"),
    [
        (1, b"    input()\nEOFError: EOF when reading a line\n", True),
        (1, b'Exception in thread "main" java.util.NoSuchElementException: No line found\n', True),
        (2, b"panic: unexpected EOF\n", True),
        (1, b"ValueError: invalid literal for int()\n", False),
        (0, b"EOFError", False),
        (-signal.SIGABRT, b"EOF", False),
    ],
)
def test_what_is_taken_for_reading_past_the_end(status: int, stderr: bytes, cause: bool) -> None:
    assert read_past_end(ended(status), stderr) is cause


@pytest.mark.parametrize(
    ("status", "stderr", "cause"),
    [
        (-signal.SIGPIPE, b"", True),
        (-signal.SIGSEGV, b"", False),
        (1, b"Traceback (most recent call last):\n  ...\nBrokenPipeError: [Errno 32] Broken pipe\n", True),
        (1, b"Traceback (most recent call last):\n  ...\nEOFError: EOF when reading a line\n", True),
        (1, b"Traceback (most recent call last):\n  ...\nValueError: x\n", False),
        (1, b'Exception in thread "main" java.util.NoSuchElementException: No line found\n', True),
        (2, b"panic: unexpected EOF\n\ngoroutine 1 [running]:\n", True),
        (101, b"thread 'main' panicked at src/main.rs:3: failed printing to stdout: Broken pipe (os error 32)\n", True),
        (1, b"node:events:492\n      throw er; // Unhandled 'error' event\n\nError: write EPIPE\n", True),
        (1, b"the program's line ended in EOF\n", False),
        # Its last flush failed, after it had decided: on what, nobody knows.
        (120, b"Exception ignored in: <_io.TextIOWrapper name='<stdout>'>\nBrokenPipeError: [Errno 32]\n", False),
    ],
)
def test_what_is_taken_for_an_interactor_that_lost_its_program(status: int, stderr: bytes, cause: bool) -> None:
    assert lost_program(ended(status), stderr) is cause
