"""Which results another run would come to as well.

What a clock decided is not: a program that was stopped at its time limit may have needed a hundredth more of it, or a
thousand times as much, and nothing tells which. So it runs again each time, and gets each time what it deserves. The
same goes for what came near a limit and was let pass, since the same program takes longer on a busy core.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

from sandbox.problem import CompileResult, Limits, Problem, TestResult
from sandbox.verdicts import FAULT_VERDICTS, LIMIT_VERDICTS, Verdict

#: Shares of a limit up to which a run was far from it. Times differ from run to run by far more than memory does;
#: within an eighth of the memory limit a program has less room than it was promised for what it prints.
TIME_SHARE = 0.5
MEMORY_SHARE = 7 / 8


def is_settled(compiled: CompileResult | None, tests: Sequence[TestResult], problem: Problem, limits: Limits) -> bool:
    """Whether the program would come to the same again. `limits`: those it ran under."""
    if compiled is not None and not compiled.ok:
        return not compiled.at_limit
    if problem.dialogue is not None or problem.passes > 1:
        # Who of two ended first, and over what, is told by their timing.
        return all(_is_settled(test, limits) and test.verdict is Verdict.ACCEPTED for test in tests)
    return all(test.verdict is Verdict.SKIPPED or _is_settled(test, limits) for test in tests)


def _is_settled(test: TestResult, limits: Limits) -> bool:
    if test.verdict in LIMIT_VERDICTS | FAULT_VERDICTS or test.by_clock or test.reruns:
        return False
    if test.signal == signal.SIGILL:
        # This host's processor lacks an instruction; another's may have it.
        return False
    if test.cpu_s is None or test.wall_s is None or test.memory_bytes is None:
        return False
    return (
        test.cpu_s <= TIME_SHARE * limits.cpu_s
        and test.wall_s <= TIME_SHARE * limits.effective_wall_s
        and test.memory_bytes <= MEMORY_SHARE * limits.memory_bytes
    )
