"""Kinds of problems: what decides on a submission, and how its tests are run, told from the problem."""

from __future__ import annotations

from sandbox.calls import CallTrials
from sandbox.checking import Checking, checking
from sandbox.interactive import RefereedTrials
from sandbox.languages import Language
from sandbox.problem import Limits, Problem
from sandbox.program import Workshop
from sandbox.referee import Referee
from sandbox.scripts import Bench, ScriptTrials
from sandbox.trials import StdioTrials, Trials


def deciding(problem: Problem, workshop: Workshop, limits: Limits, cancel_fd: int | None) -> Checking:
    """What decides on a submission that runs under such limits. Raises CheckerRefused."""
    if problem.script is not None:
        return Bench(workshop)
    if problem.dialogue is not None or problem.passes > 1:
        return Referee(problem, workshop, limits, cancel_fd)
    return checking(problem.checker, workshop, cancel_fd)


def trials(problem: Problem, language: Language, limits: Limits, decides: Checking) -> Trials:
    """The trials of a submission that `decides` decides on. Raises UnknownLanguage where the kind has no such."""
    if problem.call is not None:
        return CallTrials(problem, problem.call, language, limits)
    if problem.script is not None and isinstance(decides, Bench):
        return ScriptTrials(problem.script, language, limits, decides)
    if isinstance(decides, Referee):
        return RefereedTrials(problem, language, limits, decides)
    return StdioTrials(problem, language, limits, decides)
