"""From the results of a problem's programs to its line of the report. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rl_client.audit.rows import Disagreement, DisagreementRow, SideRow
from rl_client.datasets.submissions import Submission
from rl_client.rewards import failing
from service.contract import FAULT_VERDICTS, GradeResult, Verdict

_COMPILE_ERROR = "compile_error"

#: Of what a compiler says.
_MESSAGE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Tally:
    """What the programs of one problem came to."""

    correct: SideRow
    incorrect: SideRow
    verdicts: dict[str, dict[str, int]]
    unexpected: int
    compile_errors: int
    checker_errors: int
    internal_errors: int
    disagreements: tuple[DisagreementRow, ...]
    grader: str


def tally(
    submissions: Sequence[Submission], results: Sequence[tuple[Submission, GradeResult]], *, sources: bool
) -> Tally:
    """Count results. `submissions` are all of the problem's, graded or not; `sources` keeps those that disagree."""
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: Counter[str] = Counter()
    graded, agreed = Counter[bool](), Counter[bool]()
    disagreements = []
    for one, result in results:
        verdict = str(result.verdict)
        verdicts[one.label][verdict] += 1
        kind, message = _disagreement(one, result)
        if kind is not None:
            kinds[kind] += 1
            disagreements.append(_row(one, result, kind, message, sources=sources))
        if kind not in ("fault", "compile_error"):
            graded[one.correct] += 1
            agreed[one.correct] += kind in (None, "unexpected")
    labelled = Counter(one.correct for one in submissions)
    of_verdict = Counter(str(result.verdict) for _, result in results)
    return Tally(
        correct=SideRow(labelled=labelled[True], graded=graded[True], agreed=agreed[True]),
        incorrect=SideRow(labelled=labelled[False], graded=graded[False], agreed=agreed[False]),
        verdicts={label: dict(counts) for label, counts in verdicts.items()},
        unexpected=kinds["unexpected"],
        compile_errors=kinds["compile_error"],
        checker_errors=of_verdict[Verdict.CHECKER_ERROR],
        internal_errors=of_verdict[Verdict.INTERNAL_ERROR],
        disagreements=tuple(disagreements),
        grader=results[0][1].grader.version if results else "",
    )


def _disagreement(one: Submission, result: GradeResult) -> tuple[Disagreement | None, str]:
    """How a result is not as the set says, with what is to be told of it."""
    verdict = result.verdict
    if verdict in FAULT_VERDICTS:
        return "fault", next((test.message for test in result.tests if test.verdict == verdict), "")
    if verdict == _COMPILE_ERROR:
        return "compile_error", "" if result.compile is None else result.compile.message[:_MESSAGE_CHARS]
    if (verdict == Verdict.ACCEPTED) != one.correct:
        failed = failing(result)
        return "false_negative" if one.correct else "false_positive", failed[0].message if failed else ""
    objection = None if one.correct else one.objection(result.tests)
    return ("unexpected", objection) if objection is not None else (None, "")


def _row(one: Submission, result: GradeResult, kind: Disagreement, message: str, *, sources: bool) -> DisagreementRow:
    first = next(iter(failing(result)), None)
    return DisagreementRow(
        name=one.name,
        label=one.label,
        language=result.language,
        kind=kind,
        verdict=str(result.verdict),
        test=None if first is None else first.name or str(first.index),
        input_length=None if first is None else first.input_length,
        message=message,
        source=one.source if sources else None,
    )
