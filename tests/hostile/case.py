"""One row of the hostile suite: a program, the runs it gets, and what each must come to.

A program that attacks says how it went: it prints "held" where the attack failed, anything else where it succeeded,
so that the verdict `accepted` proves the isolation. Rows hold no code of the grader's beyond its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.problem import Limits
from sandbox.verdicts import Verdict

PROGRAMS = Path(__file__).parent / "programs"

MB = 2**20
ROOMY = Limits(cpu_s=5.0, wall_s=20.0, memory_bytes=256 * MB, output_bytes=4 * MB)
"""For programs that no limit shall stop, on a loaded host neither."""

HELD = b"held\n"
PYTHONS = ("python", "python-exec")


@dataclass(frozen=True, slots=True)
class Run:
    stdin: bytes = b""
    verdict: Verdict = Verdict.ACCEPTED
    expected: bytes = HELD
    exit_code: int | None = None
    """Checked where given."""
    signal: int | None = None
    """Checked where given."""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    language: str
    source: bytes
    runs: tuple[Run, ...]
    limits: Limits = ROOMY
    checker: str = "tokens"
    compiles: bool = True
    """Where false, the submission is a compile_error and nothing runs."""
    ignore_exit_code: bool = False
    input_file: str | None = None
    output_file: str | None = None

    @property
    def id(self) -> str:
        return f"{self.language}-{self.name}"


def program(name: str) -> bytes:
    return (PROGRAMS / name).read_bytes()


def words(verdict: Verdict, *names: str) -> tuple[Run, ...]:
    """Runs of a program that reads from stdin which of its behaviours to show."""
    return tuple(Run(name.encode() + b"\n", verdict, name=name) for name in names)


def in_pythons(name: str, source: str | bytes, *runs: Run, **options: object) -> list[Case]:
    """The same program in both ways to run Python; without runs: one that must print "held"."""
    code = source.encode() if isinstance(source, str) else source
    return [
        Case(name, language, code, tuple(runs) or (Run(),), **options)  # type: ignore[arg-type]
        for language in PYTHONS
    ]
