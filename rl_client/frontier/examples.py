"""A sample of each problem and checkpoint, to be looked at: the first that failed, or else the first."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from rl_client.ensemble.errors import BadRun
from rl_client.ensemble.runs import Run
from rl_client.evaluate.grading import Programs
from rl_client.evaluate.rows import Generation
from rl_client.evaluate.stores import GENERATIONS

#: Of a text, from its end, where its program is.
MOST_CHARS = 1500


@dataclass(frozen=True, slots=True)
class Example:
    """What a model said, which is nothing to be trusted."""

    sample: int
    text: str
    left_out: int
    """Characters before those of `text`."""
    category: str | None
    """None where its grade is not found."""
    told: str
    """Verdict, and the first failing test."""


def examples(run: Run) -> dict[tuple[str, str], Example]:
    """By the key and the grader's id of each problem. Raises BadRun of a file that is none of an evaluation."""
    grades = {grade.grade: grade for grade in run.grades()}
    # What a language's other names are the grader knows; they matter where programs are found by tags alone.
    programs = Programs(run.manifest.language, {run.manifest.language}, run.manifest.grading)
    found: dict[tuple[str, str], Example] = {}
    path = run.named.folder / GENERATIONS
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    one = Generation.model_validate_json(line)
                except ValidationError:
                    raise BadRun(f"{path}: line {number} is none of an evaluation's generations") from None
                id = (one.key, one.problem_id)
                there = found.get(id)
                if there is not None and there.category != "correct":
                    continue
                grade = grades.get(programs.hash(one))
                if there is not None and (grade is None or grade.category == "correct"):
                    continue
                text = one.text if one.source is None else one.source
                told = ""
                if grade is not None:
                    told = grade.verdict.replace("_", " ")
                    if grade.first_failure is not None:
                        told += f" at test {grade.first_failure}, of {grade.first_failure_length:,} bytes"
                found[id] = Example(
                    one.sample,
                    text[-MOST_CHARS:],
                    max(0, len(text) - MOST_CHARS),
                    None if grade is None else grade.category,
                    told,
                )
    except OSError as error:
        raise BadRun(f"{path}: {error.strerror}") from error
    return found
