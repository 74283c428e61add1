"""How often a verdict is another one the next time: what turnover is to be seen beside. Pure.

What was graded more than once tells: a program on a problem, in the same way, by different runs or twice by one. The
line of a grade holds how long it took, so that the same line twice is a copy, and not a second grading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pydantic import BaseModel, ConfigDict, Field

from rl_client.evaluate.rows import Grade


class Flakiness(BaseModel):
    """Of programs that were graded more than once."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    programs: int = Field(description="Different ones that were graded more than once.")
    gradings: int = Field(description="Of these.")
    differing: int = Field(description="Programs with different verdicts.")
    flipping: int = Field(description="Programs that were correct once, and not another time.")
    rate: float | None = Field(description="differing / programs; null where nothing was graded twice.")
    flip_rate: float | None = Field(description="flipping / programs; null where nothing was graded twice.")
    problem_ids: tuple[str, ...] = Field(description="Of the programs that flip.")

    @staticmethod
    def of(grades: Iterable[Grade], problem_ids: Collection[str]) -> Flakiness:
        """Of all gradings of these problems; faults of the grader's are none."""
        gradings: dict[str, dict[str, Grade]] = {}
        for grade in grades:
            if not grade.is_fault and grade.problem_id in problem_ids:
                gradings.setdefault(grade.grade, {})[grade.model_dump_json()] = grade
        again = [list(found.values()) for found in gradings.values() if len(found) > 1]
        differing = sum(len({one.verdict for one in found}) > 1 for found in again)
        flipping = [found for found in again if len({one.category == "correct" for one in found}) > 1]
        return Flakiness(
            programs=len(again),
            gradings=sum(map(len, again)),
            differing=differing,
            flipping=len(flipping),
            rate=differing / len(again) if again else None,
            flip_rate=len(flipping) / len(again) if again else None,
            problem_ids=tuple(sorted({one.problem_id for found in flipping for one in found})),
        )
