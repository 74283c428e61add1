"""What an evaluation came to: rates by difficulty, R_k, pass@k, each with its interval; counts; tokens and time.

All rates are means over problems of what became of their samples, by `rl_client.evaluate.statistics`. Samples at which
the grader failed are in none of them, and are counted apart. Pure, but for what it is handed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rl_client.estimators import pass_at_k
from rl_client.evaluate.errors import BadOption, NothingGraded
from rl_client.evaluate.rows import TOO_LONG, Grade
from rl_client.evaluate.settings import Manifest
from rl_client.evaluate.statistics import LEVEL, RESAMPLES, Estimate, estimates
from rl_client.evaluate.stores import Kept
from rl_client.evaluate.tasks import Task

CATEGORIES = ("correct", "optimization_failure", "correctness_failure", "format_error")

#: The k of pass@k that are told unless others are asked for, as far as there are samples.
KS = (1, 5, 10, 25, 50, 100, 250, 500, 1000)

#: From easy to hard, in the words of several sets; other words follow in their own order.
_ORDER = ("easy", "introductory", "medium", "interview", "medium_hard", "hard", "competition", "very_hard")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ProblemCounts(_Part):
    """What the samples of one problem came to."""

    key: str
    problem_id: str
    difficulty: str
    samples: int
    faults: int = Field(description="Samples at which the grader failed: in no other count but `samples`.")
    categories: dict[str, int]
    verdicts: dict[str, int]
    rewards: dict[str, int | None] = Field(description="Samples with R_k = 1, by name; null where T_k has no tests.")

    @property
    def graded(self) -> int:
        return self.samples - self.faults

    @property
    def correct(self) -> int:
        return self.categories["correct"]


class Stratum(_Part):
    """All problems, or those of one difficulty."""

    difficulty: str | None = Field(description="Null of all problems.")
    problems: int = Field(description="Those with a sample that was graded.")
    solved: int = Field(description="Of these, those with a correct sample.")
    samples: int
    faults: int
    solve_rate: Estimate
    categories: dict[str, Estimate]
    rewards: dict[str, Estimate] = Field(description="The mean of R_k over the problems that have tests in T_k.")
    pass_at: dict[int, Estimate] = Field(description="Over the problems with so many graded samples.")


class Costs(_Part):
    """Null where the server does not count tokens, or completions were in a file."""

    requests: int
    prompt_tokens: int | None
    completion_tokens: int | None
    sampling_s: float = Field(description="Wall seconds of all requests, one after the other.")
    grading_s: float = Field(description="Of all programs, one after the other, waiting for a worker included.")
    turns: int
    calls: int


class Report(_Part):
    """What `report.json` holds."""

    manifest: Manifest
    resamples: int
    level: float
    problems_without_samples: int
    samples: int
    programs: int = Field(description="Different ones.")
    faults: int
    provoked: int = Field(description="Programs that brought a checker down; they are correctness failures.")
    prompts_too_long: int = Field(description="Samples whose prompt the model had no room for; format errors.")
    cut_off: int = Field(description="Samples that ended at max_tokens.")
    costs: Costs
    strata: tuple[Stratum, ...] = Field(description="All problems, then each difficulty, if there are several.")
    problems: tuple[ProblemCounts, ...]


def check_ks(ks: Sequence[int], samples: int) -> tuple[int, ...]:
    """Those that are asked for, or as many of the usual ones as there are samples for.

    Raises BadOption where there are fewer samples than k: nothing is known of more tries than were made.
    """
    for k in ks:
        if not 1 <= k <= samples:
            raise BadOption(f"--k: pass@{k} needs {k} samples of each problem, and there are {samples}")
    return tuple(sorted(set(ks))) or tuple(k for k in KS if k <= samples)


def report_of(
    manifest: Manifest, results: Iterable[tuple[Task, Sequence[tuple[Kept, Grade]]]], ks: Sequence[int]
) -> Report:
    """`results`: of each problem what its samples came to. `ks`: as `check_ks` has them.

    Raises NothingGraded where no sample at all was.
    """
    counts: list[ProblemCounts] = []
    without, kept, grades = 0, list[Kept](), dict[str, Grade]()
    for task, samples in results:
        without += not samples
        counts.append(_counts(task, [grade for _, grade in samples]))
        kept += (one for one, _ in samples)
        grades |= {grade.grade: grade for _, grade in samples}
    graded = [one for one in counts if one.graded]
    if not graded:
        raise NothingGraded("no sample was graded: there is nothing to report")
    strata = [_stratum(None, graded, ks)]
    difficulties = {one.difficulty for one in graded}
    if len(difficulties) > 1:
        named = sorted(difficulties - {""}, key=_rank)
        strata += (_stratum(name, [one for one in graded if one.difficulty == name], ks) for name in named)
    return Report(
        manifest=manifest,
        resamples=RESAMPLES,
        level=LEVEL,
        problems_without_samples=without,
        samples=len(kept),
        programs=sum(grade.verdict != "format_error" for grade in grades.values()),
        faults=sum(one.faults for one in counts),
        provoked=sum(grades[one.grade].provoked for one in kept),
        prompts_too_long=sum(one.finish_reason == TOO_LONG for one in kept),
        cut_off=sum(one.finish_reason == "length" for one in kept),
        costs=_costs(kept, grades.values()),
        strata=tuple(strata),
        problems=tuple(counts),
    )


def _counts(task: Task, grades: Sequence[Grade]) -> ProblemCounts:
    told = [grade for grade in grades if not grade.is_fault]
    names = told[0].rewards if told else {}
    categories = Counter(str(grade.category) for grade in told)
    return ProblemCounts(
        key=task.key,
        problem_id=task.problem_id,
        difficulty=task.difficulty,
        samples=len(grades),
        faults=len(grades) - len(told),
        categories={name: categories[name] for name in CATEGORIES},
        verdicts=dict(Counter(grade.verdict for grade in told)),
        rewards={
            name: None if told[0].rewards[name] is None else sum(grade.rewards[name] == 1 for grade in told)
            for name in names
        },
    )


def _stratum(difficulty: str | None, problems: Sequence[ProblemCounts], ks: Sequence[int]) -> Stratum:
    digits = max(len(one.rewards) - 1 for one in problems)
    rungs = [*(f"R_{k}" for k in range(1, digits + 1)), "R_inf"]
    nan = float("nan")

    def reward(one: ProblemCounts, rung: str) -> float:
        # Where 10^k is past a problem's longest input, T_k is T.
        passed = one.rewards.get(rung, one.rewards["R_inf"])
        return nan if passed is None else passed / one.graded

    values = [
        [
            *(one.categories[name] / one.graded for name in CATEGORIES),
            *(reward(one, rung) for rung in rungs),
            *(pass_at_k(one.graded, one.correct, k) if k <= one.graded else nan for k in ks),
        ]
        for one in problems
    ]
    found = iter(estimates(np.array(values)))
    categories = {name: next(found) for name in CATEGORIES}
    return Stratum(
        difficulty=difficulty,
        problems=len(problems),
        solved=sum(one.correct > 0 for one in problems),
        samples=sum(one.samples for one in problems),
        faults=sum(one.faults for one in problems),
        solve_rate=categories["correct"],
        categories=categories,
        rewards={rung: next(found) for rung in rungs},
        pass_at={k: next(found) for k in ks},
    )


def _costs(kept: Sequence[Kept], grades: Iterable[Grade]) -> Costs:
    used = [one.usage for one in kept if one.usage is not None]
    prompt = [one.prompt_tokens for one in used if one.prompt_tokens is not None]
    completion = [one.completion_tokens for one in used if one.completion_tokens is not None]
    return Costs(
        requests=sum(one.requests for one in used),
        prompt_tokens=sum(prompt) if used and len(prompt) == len(used) else None,
        completion_tokens=sum(completion) if used and len(completion) == len(used) else None,
        sampling_s=sum(one.seconds for one in used),
        grading_s=sum(one.seconds for one in grades),
        turns=sum(one.turns for one in kept),
        calls=sum(one.calls for one in kept),
    )


def _rank(difficulty: str) -> tuple[int, str]:
    word = difficulty.lower()
    return (_ORDER.index(word) if word in _ORDER else len(_ORDER), word)
