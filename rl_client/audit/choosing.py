"""Which of a problem's labelled programs are graded, and with what request. Knows no grader."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from rl_client.datasets.submissions import Expectation, Submission
from service.contract import GradeRequest, first_mistake

#: How a program is told from a text that holds it: no language's programs begin so.
_FENCE = "```"


@dataclass(frozen=True, slots=True)
class Choice:
    """How programs are chosen, and run."""

    per_label: int | None
    """At most so many of each label; None for all."""
    languages: frozenset[str] | None
    """Ids of the languages wanted; None for all."""
    time_factor: float


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be graded of a problem."""

    requests: tuple[tuple[Submission, GradeRequest], ...]
    skipped: Mapping[str, int]
    """How many are not, by reason. What a limit by label leaves out is not among them."""
    audit: str
    """Hash of the problem and all of the requests."""


def choose(problem_id: str, submissions: Sequence[Submission], names: Mapping[str, str], choice: Choice) -> Chosen:
    """What of these to grade.

    A limit by label takes those whose sources have the least hashes: as good as a random draw, and the same each time.
    """
    skipped: Counter[str] = Counter()
    by_label: dict[str, list[tuple[bytes, int, Submission, GradeRequest]]] = defaultdict(list)
    for index, one in enumerate(submissions):
        reason, request = _request(problem_id, one, names, choice)
        if request is None:
            skipped[reason] += 1
        else:
            draw = hashlib.sha256(one.source.encode()).digest()
            by_label[one.label].append((draw, index, one, request))
    taken = [entry for group in by_label.values() for entry in sorted(group, key=_rank)[: choice.per_label]]
    taken.sort(key=lambda entry: entry[1])
    digest = hashlib.sha256(problem_id.encode())
    for _, _, one, request in taken:
        digest.update(repr((one.name, one.label, one.correct, [_plain(said) for said in one.expected])).encode())
        digest.update(request.model_dump_json(exclude_defaults=True).encode())
    return Chosen(tuple((one, request) for _, _, one, request in taken), dict(skipped), digest.hexdigest()[:16])


def _plain(said: Expectation) -> tuple[list[str], list[str], str]:
    """The same in every process, as a set of strings is not."""
    return sorted(said.permitted), sorted(said.required), "" if said.tests is None else said.tests.pattern


def _rank(entry: tuple[bytes, int, Submission, GradeRequest]) -> tuple[bytes, int]:
    return entry[:2]


def _request(
    problem_id: str, one: Submission, names: Mapping[str, str], choice: Choice
) -> tuple[str, GradeRequest | None]:
    """The request, or the reason why there is none."""
    if one.unusable:
        return one.unusable, None
    language = names.get(one.language.lower())
    if language is None:
        return f"language {one.language[:40] or 'unknown'}", None
    if choice.languages is not None and language not in choice.languages:
        return "language not asked for", None
    field = "completion" if one.source.lstrip().startswith(_FENCE) else "source"
    try:
        request = GradeRequest(
            problem=problem_id,
            language=language,
            time_factor=choice.time_factor,
            # What is said of single tests needs them all; whether a program passes, only the first that fails.
            stop="never" if one.expected else "first_failure",
            **{field: one.source},  # type: ignore[arg-type]
        )
    except ValidationError as error:
        return first_mistake(error), None
    return "", request
