"""The import itself: candidates in, problems out, and an account of every row.

Each row either becomes one whole problem that the sink has taken, and a line of the mapping, or is reported with the
reason. Knows neither files nor terminals.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from rl_client.datasets.base import Entry, Preset, Reader
from rl_client.datasets.row import Fault, Row, RowError
from rl_client.datasets.rows import Record
from rl_client.datasets.sinks import Answer, Parcel, Sink
from rl_client.encoded import EncodedProblem
from service.contract import first_mistake


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row, or a package, that may become a problem."""

    path: Path
    number: int | None
    """The row's position in its file; None for a package, which is a file of its own."""
    read: Callable[[], Entry]
    """Raises RowError and pydantic.ValidationError."""
    done_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that did not become a problem."""

    path: Path
    number: int | None
    fault: Fault
    reason: str

    def __str__(self) -> str:
        """For a terminal: what of the row's text would command it stands there as an escape."""
        place = str(self.path) if self.number is None else f"{self.path} row {self.number}"
        told = f"{place}: {self.reason}"
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in told)

    def as_json(self) -> bytes:
        return _json(
            {"file": str(self.path), "row": self.number, "fault": self.fault, "reason": self.reason},
        )


@dataclass(slots=True)
class Account:
    """What an import came to, so far."""

    imported: int = 0
    distinct: set[str] = field(default_factory=set)
    tests: int = 0
    content_bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        return self.imported + self.skipped.total()


class Watcher(Protocol):
    """Told of everything as it happens."""

    def imported(self, line: bytes) -> None:
        """A problem was taken; `line` is its line of the mapping."""
        ...

    def skipped(self, skipped: Skipped) -> None: ...

    def progress(self, candidate: Candidate, account: Account) -> None:
        """A candidate was read."""
        ...


def run(candidates: Iterable[Candidate], sink: Sink, watcher: Watcher) -> Account:
    """Import every candidate. Raises DatasetError, GraderError."""
    account = Account()

    def settle(answers: Iterator[Answer]) -> None:
        for answer in answers:
            ticket: _Ticket = answer.parcel.ticket
            if answer.refusal is None:
                account.imported += 1
                account.distinct.add(answer.parcel.problem.id)
                account.tests += ticket.tests
                account.content_bytes += len(answer.parcel.problem.content)
                account.kinds[ticket.kind] += 1
                watcher.imported(ticket.line)
            else:
                skip(Skipped(ticket.path, ticket.number, "refused", answer.refusal))

    def skip(skipped: Skipped) -> None:
        account.skipped[skipped.fault] += 1
        watcher.skipped(skipped)

    for candidate in candidates:
        try:
            parcel = _parcel(candidate)
        except RowError as error:
            skip(Skipped(candidate.path, candidate.number, error.fault, error.detail))
        else:
            settle(sink.put(parcel))
        watcher.progress(candidate, account)
    settle(sink.finish())
    return account


def candidates_of(
    records: Iterable[Record],
    reader: Reader,
    preset: Preset,
    *,
    where: Mapping[str, str],
    folder: Path | None = None,
    offset: int = 0,
    limit: int | None = None,
    submissions: bool = False,
    statements: bool = False,
) -> Iterator[Candidate]:
    """Rows whose columns have the values `where` asks for; of these, `limit` at most from number `offset` on.

    `folder` is where a reader with a `join` finds what belongs to its rows. `submissions` and `statements` have those
    of each row read, too.
    """

    def reading(load: Callable[[], dict[str, Any]]) -> Callable[[], Entry]:
        return partial(_read, load, reader, preset, folder, submissions, statements)

    matching = 0
    for record in records:
        if limit is not None and matching >= offset + limit:
            return
        read = reading(record.load)
        if where:
            try:
                values = record.load()
            except RowError as error:
                read = partial(_fail, error)
            else:
                if any(_shown(values.get(name)) != value for name, value in where.items()):
                    continue
                read = reading(partial(dict, values))
        matching += 1
        if matching > offset:
            yield Candidate(record.path, record.number, read, record.done_bytes)


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _read(
    load: Callable[[], dict[str, Any]],
    reader: Reader,
    preset: Preset,
    folder: Path | None,
    submissions: bool,
    statements: bool,
) -> Entry:
    row = Row(load())
    if reader.join is not None and folder is not None:
        row = Row({**row.values, **reader.join(row, folder)})
    entry = reader.read(row, preset)
    if submissions and reader.submissions is not None:
        entry = replace(entry, submissions=tuple(reader.submissions.read(row)))
    if statements and reader.statement is not None:
        entry = replace(entry, statement=reader.statement.read(row))
    return entry


def _fail(error: RowError) -> Entry:
    raise error


@dataclass(frozen=True, slots=True)
class _Ticket:
    path: Path
    number: int | None
    kind: str
    tests: int
    line: bytes


def encoded(candidate: Candidate) -> tuple[Entry, EncodedProblem]:
    """What a candidate holds, and its problem as it is stored. Raises RowError."""
    try:
        entry = candidate.read()
        return entry, EncodedProblem.of(entry.problem)
    except ValidationError as error:
        raise RowError("refused", first_mistake(error)) from None
    except RecursionError:
        raise RowError("undecodable", "data nested too deeply") from None


def _parcel(candidate: Candidate) -> Parcel:
    """Raises RowError."""
    entry, encoded_problem = encoded(candidate)
    problem = entry.problem
    mapped = {
        "file": str(candidate.path),
        "row": candidate.number,
        "key": entry.key,
        "problem_id": encoded_problem.id,
        "kind": problem.kind,
        "tests": len(problem.tests),
        "labels": dict(entry.labels),
    }
    ticket = _Ticket(candidate.path, candidate.number, problem.kind, len(problem.tests), _json(mapped))
    return Parcel(encoded_problem, ticket)


def _json(value: Mapping[str, Any]) -> bytes:
    # Surrogates and what else has no UTF-8 form are spelt as escapes: a label must not end an import.
    return json.dumps(value, ensure_ascii=True).encode()
