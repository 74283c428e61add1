"""Finished evaluations for the tests of frontiers, written by what writes them, without a model or a grader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rl_client.evaluate.grading import Programs
from rl_client.evaluate.prompts import template_of
from rl_client.evaluate.report import report_of
from rl_client.evaluate.rows import Generation, Grade
from rl_client.evaluate.settings import Grading, Manifest, Sampling
from rl_client.evaluate.stores import GENERATIONS, GRADES, Generations, Grades, Kept
from rl_client.evaluate.tasks import Task
from rl_client.evaluate.whole import REPORT
from service.contract import Category

#: Categories of samples, by letter.
LETTERS: Mapping[str, Category] = {
    "C": "correct",
    "O": "optimization_failure",
    "W": "correctness_failure",
    "F": "format_error",
}


def evaluated(folder: Path, problems: Mapping[str, str], *, text: str = "print({})", temperature: float = 1.0) -> Path:
    """`problems`: what the samples of each key came to, such as CCOW. `text`: of a sample, with its number put in."""
    samples = len(next(iter(problems.values())))
    source = Sampling(
        run=folder.name,
        model=folder.name,
        api="chat",
        setting="reasoning",
        template=template_of("statement"),
        chunk=4,
        temperature=temperature,
        top_p=1,
        max_tokens=10,
    )
    manifest = Manifest(language="python", source=source, grading=Grading(), samples=samples)
    programs = Programs("python", {"python"}, manifest.grading)
    folder.mkdir(parents=True)
    with Generations(folder / GENERATIONS, programs.hash) as generations, Grades(folder / GRADES) as grades:
        manifest.keep(folder, is_begun=False)
        for key, letters in problems.items():
            for number, letter in enumerate(letters):
                said = f"By {folder.name}.\n```python\n{text.replace('{}', str(number))}\n```"
                one = Generation(task=f"task {key}", problem_id=f"id {key}", key=key, sample=number, text=said)
                generations.add([one])
                grades.add(_grade(one, programs.hash(one), LETTERS[letter]))
        results = [
            (Task(f"task {key}", f"id {key}", key, "", ""), _results(generations, grades, key, samples))
            for key in problems
        ]
        (folder / REPORT).write_text(report_of(manifest, results, ()).model_dump_json())
    return folder


def _results(generations: Generations, grades: Grades, key: str, samples: int) -> Sequence[tuple[Kept, Grade]]:
    found = []
    for number in range(samples):
        kept = generations.get(f"task {key}", number)
        assert kept is not None
        grade = grades.get(kept.grade)
        assert grade is not None
        found.append((kept, grade))
    return found


def _grade(one: Generation, name: str, category: Category) -> Grade:
    is_right = category == "correct"
    return Grade(
        grade=name,
        problem_id=one.problem_id,
        key=one.key,
        verdict="accepted" if is_right else "wrong_answer",
        category=category,
        rewards={"R_1": float(is_right), "R_inf": float(is_right)},
        tests=2,
        passed=1,
        first_failure=None if is_right else "<i>second</i>",
        first_failure_length=None if is_right else 12,
        seconds=0.1,
        grader="1",
    )
