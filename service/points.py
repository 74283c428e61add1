"""The score of a submission: points of tests, summed up by the groups of its problem.

Pure, like `service.scoring`, and apart from it: rewards and categories know no points, points know no input lengths.

A test earns f x p: p are its points, f is the share of them that it deserves. f is 1 where it was accepted and 0 where
it failed, or what a checker that scores said for either, held within 0 and 1; 0 for every failure that no checker saw.

- A `sum` group earns the sum of f x p over its tests: `sum` of the default grader in the legacy Kattis format
  (https://www.kattis.com/problem-package-format/spec/legacy).
- A `min` group earns the least f x p of its tests: `min` of that grader, and the subtasks of the IOI, which are worth
  S x min f (score type GroupMin of CMS, the system of the IOI); each of its tests then bears S.
- A group whose `depends` are not all passed whole (f = 1 in each of their tests, and what they depend on passed too)
  earns nothing, as groups of tests on Codeforces do.
- A test outside groups earns f x p by itself; one without points earns nothing and holds nobody back.

The score is the sum of these. It is None where no test has points, and where a test ended in a fault of the grader.
"""

from __future__ import annotations

import graphlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sandbox.verdicts import FAULT_VERDICTS, Verdict
from service.contract import Problem, Scoring


class Scored(Protocol):
    """A test that was judged: `sandbox.problem.TestResult` and `service.contract.TestRow` both are."""

    @property
    def index(self) -> int: ...
    @property
    def verdict(self) -> Verdict: ...
    @property
    def score(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Part:
    """A group of the problem, or, without a name, its tests outside groups."""

    name: str | None
    scoring: Scoring
    points: Mapping[int, float]
    """By index of the test."""
    depends: tuple[str, ...] = ()

    def earned(self, shares: Sequence[float]) -> float:
        earned = [shares[index] * points for index, points in self.points.items()]
        return min(earned) if self.scoring == "min" else math.fsum(earned)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a problem gives points."""

    tests: int
    parts: tuple[Part, ...]
    """The problem's groups in its order; those without a group last."""


@dataclass(frozen=True, slots=True)
class Earned:
    part: Part
    points: float | None
    max_points: float


@dataclass(frozen=True, slots=True)
class Award:
    score: float | None
    parts: tuple[Earned, ...]


def plan(problem: Problem) -> Plan | None:
    """How the problem gives points; None where it gives none."""
    points: dict[str | None, dict[int, float]] = {}
    for index, test in enumerate(problem.tests):
        if test.points is not None:
            points.setdefault(test.group, {})[index] = test.points
    if not points:
        return None
    parts = [Part(name, group.scoring, points[name], group.depends) for name, group in problem.groups.items()]
    if None in points:
        parts.append(Part(None, "sum", points[None]))
    return Plan(len(problem.tests), tuple(parts))


def award(plan: Plan, tests: Sequence[Scored], *, ran: bool = True) -> Award:
    """What a submission earns.

    Where the judge stopped early, tests that were skipped may leave points open: those are None, and so is the score.
    `ran` is false where nothing was run because there was no program: skipped tests then failed. Raises ValueError
    where `tests` are not the problem's.
    """
    if sorted(test.index for test in tests) != list(range(plan.tests)):
        raise ValueError("these are not the tests of the problem")
    most = _points(plan, [1.0] * plan.tests)
    if any(test.verdict in FAULT_VERDICTS for test in tests):
        return _award(plan, [None] * len(most), most)
    # Points only grow with shares: what skipped tests leave open lies between all of them failed and all accepted.
    least, best = [0.0] * plan.tests, [0.0] * plan.tests
    for test in tests:
        least[test.index] = _share(test)
        best[test.index] = 1.0 if ran and test.verdict is Verdict.SKIPPED else _share(test)
    bounds = zip(_points(plan, least), _points(plan, best), strict=True)
    return _award(plan, [low if low == high else None for low, high in bounds], most)


def _award(plan: Plan, points: Sequence[float | None], most: Sequence[float]) -> Award:
    known = [value for value in points if value is not None]
    score = math.fsum(known) if len(known) == len(points) else None
    return Award(score, tuple(map(Earned, plan.parts, points, most)))


def _share(test: Scored) -> float:
    """The share of its points that a test deserves; a checker's word counts where one was heard."""
    if test.verdict not in (Verdict.ACCEPTED, Verdict.WRONG_ANSWER):
        return 0.0
    if test.score is None:
        return 1.0 if test.verdict is Verdict.ACCEPTED else 0.0
    return min(1.0, max(0.0, test.score))


def _points(plan: Plan, shares: Sequence[float]) -> list[float]:
    """Points of each part, in the plan's order."""
    named = {part.name: part for part in plan.parts if part.name is not None}
    passed: dict[str, bool] = {}
    for name in graphlib.TopologicalSorter({name: part.depends for name, part in named.items()}).static_order():
        part = named[name]
        passed[name] = all(shares[index] == 1 for index in part.points) and all(passed[d] for d in part.depends)
    return [part.earned(shares) if all(passed[d] for d in part.depends) else 0.0 for part in plan.parts]
