"""The lines of `generations.jsonl` and `grades.jsonl`. Pure."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from rl_client.rewards import failing, is_fault, is_provoked, r_inf, r_k
from service.contract import FAULT_VERDICTS, Category, GradeResult, Verdict

TOO_LONG = "prompt_too_long"
"""The `finish_reason` of samples that there are none of, since the model has no room for their prompt."""


class _Line(BaseModel):
    """Later versions may add fields; an older one reads on."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Usage(_Line):
    """What a request cost."""

    requests: int = 1
    prompt_tokens: int | None = Field(description="By the server's own count, if it keeps one.")
    completion_tokens: int | None = Field(description="Of all samples that were asked for.")
    seconds: float = Field(description="Wall time.")


class Generation(_Line):
    """One sample of a model."""

    task: str = Field(description="Hash of what was asked for, and how.")
    problem_id: str
    key: str
    sample: int = Field(ge=0)
    seed: int | None = Field(default=None, description="Of the request; null where it came from a file.")
    text: str = Field(default="", description="What the model said, in its last turn.")
    reasoning: str | None = Field(default=None, description="What a server told apart from that as thought.")
    source: str | None = Field(default=None, description="The program, where it was handed in as a file.")
    finish_reason: str | None = None
    refusal: str | None = Field(default=None, description="The server's words, where it has no room for the prompt.")
    turns: int = 1
    calls: int = Field(default=0, description="Of tools.")
    conversation: tuple[dict[str, str], ...] | None = Field(default=None, description="All of a rollout with tools.")
    usage: Usage | None = Field(
        default=None, description="Of the request, on the first of its samples: their sum is that of all."
    )


class Grade(_Line):
    """What one program came to."""

    grade: str = Field(description="Hash of the program, the problem with its tests and limits, and how it was graded.")
    problem_id: str
    key: str
    verdict: str
    category: Category | None = Field(
        description="Null where the grader failed; a program that brought a checker down is a correctness_failure."
    )
    rewards: dict[str, float | None] = Field(description="R_k by name; null where T_k has no tests.")
    tests: int
    passed: int
    first_failure: str | None = Field(default=None, description="Name or number of the shortest failing test.")
    first_failure_length: int | None = None
    message: str = Field(default="", description="The grader's word; holds nothing of the tests' data.")
    cpu_s: float | None = Field(default=None, description="The most of any test.")
    memory_bytes: int | None = Field(default=None, description="The most of any test.")
    seconds: float = Field(description="From the request's arrival to its result.")
    cached: bool = Field(
        default=False, description="It was not run: the grader knew what an earlier run of it had come to."
    )
    provoked: bool = False
    tries: int = Field(default=1, description="How often it was graded, until the grader did not fail.")
    grader: str = Field(description="The grader's version.")

    @property
    def is_fault(self) -> bool:
        """Whether it says nothing of the program."""
        return self.category is None

    @staticmethod
    def of(name: str, key: str, result: GradeResult, tries: int) -> Grade:
        """`name`: its hash."""
        fault, provoked = is_fault(result), is_provoked(result)
        failed = failing(result)
        faulty = [test for test in failed if test.verdict in FAULT_VERDICTS] if fault else []
        told = next(iter(faulty or failed), None)
        category: Category | None = "correctness_failure" if provoked else result.category
        rewards = {f"R_{group.k}": r_k(group.k)(result) for group in result.groups} | {"R_inf": r_inf(result)}
        return Grade(
            grade=name,
            problem_id=result.problem_id,
            key=key,
            verdict=str(result.verdict),
            category=None if fault else category,
            rewards=rewards,
            tests=len(result.tests),
            passed=sum(test.verdict is Verdict.ACCEPTED for test in result.tests),
            first_failure=None if told is None else told.name or str(told.index),
            first_failure_length=None if told is None else told.input_length,
            message="" if told is None else told.message,
            cpu_s=max((test.cpu_s for test in result.tests if test.cpu_s is not None), default=None),
            memory_bytes=max(
                (test.memory_bytes for test in result.tests if test.memory_bytes is not None), default=None
            ),
            seconds=result.timing.total_s,
            cached=result.timing.cached,
            provoked=provoked,
            tries=tries,
            grader=result.grader.version,
        )
