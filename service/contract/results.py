"""What a client is told of a grade."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sandbox.verdicts import Verdict
from service.contract.base import Response
from service.contract.fields import Category, Reward, Scoring, SubmissionVerdict, Taxonomy
from service.contract.identity import ProblemId


class TestRow(Response):
    """What one test came to. Figures are null where the test did not run."""

    index: int = Field(description="Position in the problem.")
    name: str | None = Field(default=None, description="As the problem names it.")
    input_length: int = Field(description="In the request's `length_unit`.")
    verdict: Verdict = Field(description="What the test came to.")
    cpu_s: float | None = Field(default=None, description="CPU seconds, user and system.")
    wall_s: float | None = Field(default=None, description="Wall seconds.")
    memory_bytes: int | None = Field(default=None, description="Peak memory.")
    exit_code: int | None = Field(default=None, description="Exit status, null where a signal ended the program.")
    signal: int | None = Field(default=None, description="Signal that ended the program.")
    score: float | None = Field(
        default=None, description="Share of the full score, where the checker gave points: 1.0 is all of it."
    )
    message: str = Field(default="", description="For people; holds nothing of the test's data.")
    provoked: bool = Field(
        default=False,
        description="Of a `checker_error`: the checker takes the expected answer, or the interactor a program that "
        "says nothing, so that it was this program's output which brought the fault about.",
    )
    reruns: int = Field(default=0, description="Repeats of a limit failure seen while the host was under pressure.")
    stdout_tail: str | None = Field(
        default=None,
        description="End of stdout, less of it where there are many tests, only with `detail` set to `outputs`; "
        "invalid UTF-8 is replaced.",
    )
    stderr_tail: str | None = Field(
        default=None,
        description="End of stderr, less of it where there are many tests, only with `detail` set to `outputs`; "
        "invalid UTF-8 is replaced.",
    )
    output_tail: str | None = Field(
        default=None,
        description="End of what was judged in place of stdout, only with `detail` set to `outputs`: of the problem's "
        "`output_file`, or of what the function returned, as JSON. Null where neither was left.",
    )
    checker_message: str | None = Field(
        default=None,
        description="What the checker said, only with `detail` set to `outputs`; may quote the test.",
    )


class GroupRow(Response):
    """The tests of T_k, those with input length < 10^k, counted. Each group holds the one before it.

    Tests that ended in checker_error or internal_error are in `tests` only. The last row covers every test.
    """

    k: int = Field(ge=1, description="The group holds tests with input length < 10^k.")
    tests: int = Field(description="Size of T_k.")
    passed: int = Field(description="Accepted.")
    failed: int = Field(description="Failed by the program.")
    skipped: int = Field(description="Not run.")


class PointRow(Response):
    """The points of one group of the problem; the last row, without a group, is that of tests outside groups."""

    group: str | None = Field(description="Name of the group.")
    scoring: Scoring = Field(description="How the points of its tests become the group's.")
    tests: int = Field(description="Number of its tests that have points.")
    points: float | None = Field(
        description="Earned. Null where tests that were not run leave it open, and where the grader itself failed."
    )
    max_points: float = Field(description="What it is worth when every test gets full marks.")


class LimitsRow(Response):
    """What one run of the program was held to: the problem's limits, with the request's and the language's factors."""

    cpu_s: float = Field(description="CPU seconds, user and system.")
    wall_s: float = Field(description="Wall seconds.")
    memory_bytes: int = Field(description="Peak memory.")
    output_bytes: int = Field(description="Bound for stdout and for stderr, each.")
    processes: int = Field(description="Processes and threads alive at once.")


class FitRow(Response):
    """A curve fitted to what the tests used along the input length n: b + c n^p, or b + c 2^(n/d)."""

    model: Literal["power", "exponential"] = Field(
        description="`exponential` where the cost grows so fast that no power fits as well."
    )
    exponent: float | None = Field(description="p: 1 is linear, 2 quadratic. Null of an exponential.")
    exponent_low: float | None = Field(description="Lower bound of p's 95% confidence interval.")
    exponent_high: float | None = Field(description="Upper bound of it.")
    doubling_length: float | None = Field(description="d: so much longer an input doubles the cost. Null of a power.")
    limit_length: int | None = Field(
        description="The input length at which the limit is met: of the shortest test that met it, or where the curve "
        "does, if that is before. Null where that is too far to tell."
    )
    tests: int = Field(description="Number of tests that it rests on: those that ran to an end or met this limit.")


class GrowthRow(Response):
    """How the program's needs grow with the input length, as far as its tests tell."""

    cpu: FitRow | None = Field(description="CPU time in seconds. Null where the tests do not tell.")
    memory: FitRow | None = Field(description="Peak memory in bytes. Null where the tests do not tell.")


class CompileRow(Response):
    """How compiling went."""

    ok: bool = Field(description="False gives the submission the verdict `compile_error`.")
    cpu_s: float = Field(description="CPU seconds; 0 where the result came from the cache.")
    cached: bool = Field(description="Taken from a cache: the compile cache, or with `timing.cached` the whole result.")
    message: str = Field(description="What the compiler said, cut to a bound.")
    timed_out: bool = Field(default=False, description="It took longer than a compiler may.")


class Timing(Response):
    """Where the wall time of a request went, in seconds. None of it counts against the program."""

    queue_s: float = Field(description="Waiting for a worker.")
    compile_s: float = Field(description="Compiling, cache look-up included.")
    run_s: float = Field(description="Running and checking the tests.")
    total_s: float = Field(description="From the request's arrival to its result.")
    cached: bool = Field(
        default=False,
        description="Nothing was run: an earlier grade of the same program on the same problem came to this, and its "
        "tests show what they used then.",
    )


class GraderInfo(Response):
    """What graded, so that results can be told apart later."""

    version: str = Field(description="Version of rkgrade.")
    sandbox: str = Field(description="What contains programs, such as `nsjail, cgroup v2`.")
    language_version: str = Field(description="Compiler or interpreter version.")
    secure: bool = Field(description="False where the grader was told to run without cgroups.")


class GradeResult(Response):
    """What one submission came to."""

    id: str | None = Field(default=None, description="As the request gave it.")
    index: int | None = Field(default=None, description="Position in the batch; null outside batches.")
    problem_id: ProblemId = Field(description="Also where the request carried the problem itself.")
    language: str = Field(description="Id of the language that was used.")
    verdict: SubmissionVerdict = Field(
        description="The first failure's verdict, or accepted, compile_error, format_error. "
        "Where the grader itself failed on some test: that test's checker_error or internal_error."
    )
    category: Category | None = Field(description="Null where the grader itself failed.")
    taxonomy: Taxonomy = Field(description="The rule that named the category.")
    first_failure_length: int | None = Field(
        description="Least input length among failing tests. "
        "Null where none failed, no test was run, or the grader itself failed."
    )
    rewards: dict[str, Reward] = Field(
        description="R_k for each k up to the decimal digits of the longest input length, and R_inf. "
        "Null where T_k is empty, and everywhere where the grader itself failed.",
        examples=[{"R_1": None, "R_2": 1, "R_3": 0, "R_inf": 0}],
    )
    groups: tuple[GroupRow, ...] = Field(description="One row for each k of `rewards`, cumulative.")
    score: float | None = Field(
        default=None,
        description="Sum of `point_groups`. Null where the problem gives no points, "
        "where tests that were not run leave it open, and where the grader itself failed.",
    )
    point_groups: tuple[PointRow, ...] = Field(
        default=(), description="Points by group of the problem; empty where it gives none."
    )
    tests: tuple[TestRow, ...] = Field(description="In the problem's order.")
    limits: LimitsRow | None = Field(
        default=None,
        description="What each test was held to. Null where there was no program to run, or the grader failed first.",
    )
    growth: GrowthRow | None = Field(
        default=None,
        description="How CPU time and memory grow with the input length. Null where the tests do not span enough.",
    )
    compile: CompileRow | None = Field(description="Null where nothing was compiled.")
    timing: Timing = Field(description="Where the wall time went.")
    grader: GraderInfo = Field(description="What graded.")
