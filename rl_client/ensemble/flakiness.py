"""How often a verdict is another one the next time: what turnover is to be seen beside. Pure.

What was run more than once tells: a program on a problem, graded in the same way by different runs, or twice by one.
An answer of the grader's from what it knew of an earlier run is no second one, and agrees with the first whatever the
program does; nor is anything run of an answer without a program. The line of a grade holds how long it took, so that
the same line twice is a copy, and not a second run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pydantic import BaseModel, ConfigDict, Field

from rl_client.evaluate.rows import Grade


class Flakiness(BaseModel):
    """Of programs that were run more than once."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    programs: int = Field(description="Different ones that were run more than once.")
    gradings: int = Field(description="Of these.")
    known: int = Field(
        default=0, description="Gradings that the grader answered by an earlier run of the program: in no other count."
    )
    differing: int = Field(description="Programs with different verdicts.")
    flipping: int = Field(description="Programs that were correct once, and not another time.")
    rate: float | None = Field(description="differing / programs; null where nothing was run twice.")
    flip_rate: float | None = Field(description="flipping / programs; null where nothing was run twice.")
    problem_ids: tuple[str, ...] = Field(description="Of the programs that flip.")

    @staticmethod
    def of(grades: Iterable[Grade], problem_ids: Collection[str]) -> Flakiness:
        """Of all gradings of these problems; faults of the grader's are none."""
        gradings: dict[str, dict[str, Grade]] = {}
        known = 0
        for grade in grades:
            if grade.is_fault or grade.category == "format_error" or grade.problem_id not in problem_ids:
                continue
            if grade.cached:
                known += 1
            else:
                gradings.setdefault(grade.grade, {})[grade.model_dump_json()] = grade
        again = [list(found.values()) for found in gradings.values() if len(found) > 1]
        differing = sum(len({one.verdict for one in found}) > 1 for found in again)
        flipping = [found for found in again if len({one.category == "correct" for one in found}) > 1]
        return Flakiness(
            programs=len(again),
            gradings=sum(map(len, again)),
            known=known,
            differing=differing,
            flipping=len(flipping),
            rate=differing / len(again) if again else None,
            flip_rate=len(flipping) / len(again) if again else None,
            problem_ids=tuple(sorted({one.problem_id for found in flipping for one in found})),
        )
