"""What of a problem has to be compiled before it is of any use: the programs that it brings along.

Pure: needs the contract alone.
"""

from __future__ import annotations

from service import contract

_PROGRAMS = (contract.TestlibChecker, contract.KattisChecker, contract.PythonChecker)


def to_vet(problem: contract.Problem) -> bytes | None:
    """JSON of the problem with an empty test in place of its own, or None where it brings no programs."""
    if not any(isinstance(value, _PROGRAMS) for _, value in problem):
        return None
    empty = problem.tests[0].model_copy(update={"input": "", "output": "", "name": None, "points": None, "group": None})
    return problem.model_copy(update={"tests": (empty,), "groups": {}}).model_dump_json(exclude_defaults=True).encode()
