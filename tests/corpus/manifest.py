"""What each program in `programs/` must come to when it is graded on its problem of the shared corpus.

Reads `manifest.toml` beside it and nothing else: knows neither the grader nor where the problems lie.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"

Verdict = Literal["accepted", "wrong_answer", "time_limit", "memory_limit", "runtime_error", "compile_error"]
Category = Literal["correct", "optimization_failure", "correctness_failure"]


@dataclass(frozen=True)
class Program:
    """One submission and what its grade must say.

    `verdict` is that of the submission, `category` follows the rule `first_failure`. `rewards` holds R_1 to R_k
    and R_inf; None where no test of the problem is that short. `stop` is the mode to grade it in: all rewards are
    exact in both, but under `never` a program that is too slow costs its limit once per large test.
    """

    problem: str
    file: str
    language: Literal["python", "cpp"]
    verdict: Verdict
    category: Category
    stop: Literal["never", "first_failure"]
    rewards: Mapping[str, int | None]

    @property
    def name(self) -> str:
        return f"{self.problem}/{self.file}"

    @property
    def source(self) -> str:
        return (PROGRAMS / self.problem / self.file).read_text(encoding="utf-8")


def load() -> tuple[Program, ...]:
    """Every program of the manifest, in its order.

    Raises ValueError where manifest and folder disagree: a program nobody grades would pass for a tested one.
    """
    entries = tomllib.loads((HERE / "manifest.toml").read_text(encoding="utf-8"))["program"]
    programs = tuple(_program(**entry) for entry in entries)
    listed = sorted(program.name for program in programs)
    present = sorted(
        path.relative_to(PROGRAMS).as_posix() for suffix in ("py", "cpp") for path in PROGRAMS.glob(f"*/*.{suffix}")
    )
    if listed != present:
        difference = sorted(set(listed) ^ set(present)) or "a repeated entry"
        raise ValueError(f"manifest.toml and programs/ differ in {difference}")
    return programs


def _program(*, rewards: Mapping[str, int | str], **fields: str) -> Program:
    # TOML has no null, so the manifest spells it as a string.
    values = {name: None if value == "null" else value for name, value in rewards.items()}
    return Program(rewards=MappingProxyType(values), **fields)  # type: ignore[arg-type]
