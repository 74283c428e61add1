"""How a conversation between a program and the problem's interactor came out: the one function that decides it.

Pure: from how the two ended to a verdict. Knows nothing of cells, pipes or protocols.

Two processes that wait for each other end within milliseconds, and which of them is seen to end first then says little:
a process closes its descriptors some time before its end is known. So causes come before clocks. A program that died of
SIGPIPE did so because the interactor had gone; one that was stopped at a limit was alive until then. Only where no such
cause is known do the clocks decide, and they only from `MARGIN_S` on.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from signal import SIGPIPE

from sandbox.verdicts import Evidence, Verdict

#: Ends that are seen closer together than this have no order. On a loaded host the wrong one was seen to be first by
#: 11 ms.
MARGIN_S = 0.02

#: What runtimes that take no SIGPIPE say when they wrote to a pipe that nobody reads any more.
_BROKEN_PIPE = re.compile(rb"broken ?pipe|\bEPIPE\b", re.IGNORECASE)

#: What they say when they read from one that nobody writes to any more.
_END_OF_FILE = re.compile(rb"\bEOFError\b|\bNoSuchElementException\b|\bend of file\b|\bEOF\b", re.IGNORECASE)

#: How runtimes tell of an error that ended a program, other than one of Python's last flush, which may follow any exit.
_UNCAUGHT = re.compile(
    rb"^Traceback \(most recent call last\)|^Exception in thread |^panic: |\bpanicked at\b|\bUnhandled\b|\bUncaught\b",
    re.MULTILINE,
)


class First(enum.Enum):
    PROGRAM = "program"
    INTERACTOR = "interactor"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How the program ended."""

    failure: Verdict | None
    """As if it had run alone; None where it ended cleanly."""
    ended_at: float = 0.0
    stopped_at: float | None = None
    """When the judge stopped it at a limit, on the clock of `ended_at`."""
    wrote_to_nobody: bool = False
    """It failed because it wrote when the interactor had gone."""
    read_past_end: bool = False
    """It failed because it read when the interactor had gone."""


@dataclass(frozen=True, slots=True)
class InteractorEnd:
    """How the interactor ended."""

    verdict: Verdict
    """By its protocol: accepted, wrong_answer or checker_error."""
    ended_at: float = 0.0
    over_limit: bool = False
    """A limit of its own ended it."""
    lost_program: bool = False
    """It answered outside its protocol because it read or wrote when the program had gone, or learned that it had."""


def settle(program: ProgramEnd, interactor: InteractorEnd) -> Verdict:
    """The verdict of one conversation, by the first of these that holds:

    1.  The interactor fell over the program's going: the program's own failure, else `wrong_answer`.
    2.  The program ended cleanly, or died of writing to an interactor that had gone: the interactor's word.
    3.  The program waited until its wall limit, while the interactor went on into a limit of its own: `checker_error`.
    4.  The interactor accepted: the program's failure, whenever it came.
    5.  The interactor rejected: `wrong_answer` where it was first, else the program's failure.
    6.  The interactor failed: the program's failure where the program was first, else `checker_error`.

    The rule behind it is that of the ICPC problem package format, of DOMjudge and of problemtools.
    """
    failure = program.failure
    if interactor.lost_program:
        return failure or Verdict.WRONG_ANSWER
    if failure is None or program.wrote_to_nobody:
        return interactor.verdict
    if failure is Verdict.IDLE and interactor.over_limit:
        return Verdict.CHECKER_ERROR
    if interactor.verdict is Verdict.ACCEPTED:
        return failure
    first = who_was_first(program, interactor)
    if interactor.verdict is Verdict.WRONG_ANSWER:
        return Verdict.WRONG_ANSWER if first is First.INTERACTOR else failure
    return failure if first is First.PROGRAM else Verdict.CHECKER_ERROR


def who_was_first(program: ProgramEnd, interactor: InteractorEnd) -> First:
    """Who ended first, by causes where they are known, else by the clocks."""
    if interactor.lost_program:
        return First.PROGRAM
    if program.wrote_to_nobody or program.read_past_end:
        return First.INTERACTOR
    if program.stopped_at is not None:
        return First.PROGRAM if program.stopped_at < interactor.ended_at else First.INTERACTOR
    lead_s = interactor.ended_at - program.ended_at
    if abs(lead_s) <= MARGIN_S:
        return First.NEITHER
    return First.PROGRAM if lead_s > 0 else First.INTERACTOR


def wrote_to_nobody(evidence: Evidence, stderr: bytes) -> bool:
    """Whether a run failed because it wrote to a pipe without a reader: by its signal, or its runtime's last words."""
    if evidence.signal is not None:
        return evidence.signal == SIGPIPE
    return bool(evidence.exit_code) and _BROKEN_PIPE.search(stderr) is not None


def read_past_end(evidence: Evidence, stderr: bytes) -> bool:
    """Whether a run failed because it read from a pipe without a writer: by its runtime's last words."""
    return bool(evidence.exit_code) and _END_OF_FILE.search(stderr) is not None


def lost_program(evidence: Evidence, stderr: bytes) -> bool:
    """Whether an interactor that answered outside its protocol did so because its program had gone.

    A Python program whose last flush fails ends with status 120 whatever it meant to say: that is no such case.
    """
    if evidence.signal is not None:
        return evidence.signal == SIGPIPE
    lost = _BROKEN_PIPE.search(stderr) or _END_OF_FILE.search(stderr)
    return bool(evidence.exit_code and lost and _UNCAUGHT.search(stderr))
