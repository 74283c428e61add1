"""The merge itself: one pass over the inputs, piece by piece, into every output at once.

The pass follows the files of the template, and so do the outputs. One thread adds; others read and hash what it is to
add, and write and hash what it has added, each file in its order; one waits for the disk. Memory depends on the size of
none of them. Knows no terminal.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol

import numpy as np

from rl_client.merge import records
from rl_client.merge.arithmetic import FLOATS, Counts, Measures, Raw, Sums, is_kept_apart
from rl_client.merge.checkpoint import INDEX
from rl_client.merge.errors import BadCheckpoint, NotFinite
from rl_client.merge.headers import Tensor
from rl_client.merge.lanes import Buffers, Lanes
from rl_client.merge.output import Output, Shard
from rl_client.merge.plan import VERSION, Plan, check_room, check_unchanged
from rl_client.merge.reading import Piece, Reading
from rl_client.merge.recipes import Recipe
from rl_client.merge.records import Change, FileRecord, InputRecord, MergeRecord, NotFiniteRecord, ShardRecord

#: Pieces that wait to be written while the next is made.
_WAITING = 3
#: Of a file, what is brought to the disk while more of it is made.
_SYNC_BYTES = 64 * 2**20


class Watcher(Protocol):
    """Told of everything as it happens."""

    def planned(self, total_bytes: int) -> None:
        """So much is to be written, that is not there yet."""
        ...

    def advanced(self, done_bytes: int) -> None:
        """So much more of it."""
        ...


@dataclass(slots=True)
class _Open:
    """A file being written, of one output."""

    output: Output
    coefficients: tuple[float, ...]
    shard: Shard
    lane: int
    unsynced_bytes: int = 0
    not_finite: dict[str, Counts] = field(default_factory=dict)

    def end(self, name: str, changes: dict[str, Change]) -> None:
        written = self.shard.close()
        counts = {tensor: NotFiniteRecord.of(one) for tensor, one in self.not_finite.items()}
        self.output.add(ShardRecord(file=name, written=written, not_finite=counts, changes=changes))


def merge(plan: Plan, watcher: Watcher) -> list[Output]:
    """Write every output, in the order of the recipes. Those that are there, and files that an interrupted merge has
    done, stay as they are. Raises MergeError; what is whole by then is kept, and merging again goes on from there.
    """
    outputs = [Output(plan.out / recipe.name, plan.identity(recipe)) for recipe in plan.recipes]
    todo = [(one, recipe) for one, recipe in zip(outputs, plan.recipes, strict=True) if not one.is_whole]
    sizes = {name: sum(tensor.bytes for tensor in tensors) for name, tensors in plan.shards.items()}
    left = sum(size for output, _ in todo for name, size in sizes.items() if name not in output.done)
    watcher.planned(left)
    if not todo:
        return outputs
    check_room(plan.out, left, [output for output, _ in todo])
    with ExitStack() as stack:
        for output, _ in todo:
            stack.enter_context(output.begun())
        with _Pass(plan, todo, watcher) as run:
            for name, tensors in plan.shards.items():
                run.shard(name, tensors)
            hashed = run.hashed()
        check_unchanged(plan.stamps)
        for output, recipe in todo:
            record = _record(plan, recipe, output, hashed)
            output.finish(record, dict(_companions(plan, record)))
    return outputs


class _Pass:
    """One pass over the inputs; as a context manager ends when everything is on the disk."""

    def __init__(self, plan: Plan, todo: Sequence[tuple[Output, Recipe]], watcher: Watcher) -> None:
        self._plan = plan
        self._todo = todo
        self._watcher = watcher
        self._sources = plan.sources
        # A lane of each source, then one of each output.
        self._lanes = Lanes(len(self._sources) + len(todo))
        self._reading = Reading(
            self._sources, [one for tensors in plan.shards.values() for one in tensors], self._lanes
        )
        largest = self._reading.largest
        self._sums = Sums(len(self._sources), largest, deltas=plan.base is not None)
        self._coefficients = [plan.coefficients(recipe) for recipe in plan.recipes]
        # What waits for the disk has one of its own: theirs go on.
        self._disk = Lanes(1)
        self._given_up = threading.Event()
        self._added = Buffers(_WAITING + self._lanes.threads, largest * 8)
        self._ends: list[Future[None]] = []
        self._opened: list[_Open] = []

    def __enter__(self) -> _Pass:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for end in self._ends:
                    end.result()
        finally:
            # Of what is not whole nothing need come to the disk; what is, `close` brings there.
            self._given_up.set()
            self._reading.cancel()
            self._added.cancel()
            # Files that are written and only not on the disk yet are not given up.
            self._lanes.end()
            self._disk.end()
            for one in self._opened:
                one.shard.drop()

    def shard(self, name: str, tensors: Sequence[Tensor]) -> None:
        """Write a file of each output that has it not."""
        # Of the files before the last all are on the disk: a slow one does not let them pile up.
        while len(self._ends) > len(self._todo):
            self._ends.pop(0).result()
        opened: list[_Open] = []
        for lane, (output, recipe) in enumerate(self._todo, len(self._sources)):
            if name not in output.done:
                shard = output.shard(name, self._plan.head(recipe, tensors))
                opened.append(_Open(output, self._plan.coefficients(recipe), shard, lane))
                self._opened.append(opened[-1])
        if not opened:
            return
        measures: dict[str, Measures] = {}
        for piece in self._reading.pieces(tensors):
            if piece.tensor.dtype in FLOATS:
                measured = self._average(piece, opened)
                if piece.tensor.name in measures:
                    measures[piece.tensor.name].add(measured)
                else:
                    measures[piece.tensor.name] = measured
            else:
                self._copy(piece, opened)
            self._watcher.advanced(piece.bytes * len(opened))
        changes = {name: _change(one) for name, one in measures.items()}
        self._added.settle()
        self._ends += [self._disk.put(0, one.end, name, changes) for one in opened]

    def hashed(self) -> dict[Path, FileRecord]:
        """Of all files of the sources. Raises BadCheckpoint."""
        return self._reading.hashed()

    def _average(self, piece: Piece, opened: Sequence[_Open]) -> Measures:
        tensor, sums = piece.tensor, self._sums
        sums.begin(tensor.dtype, piece.raws, piece.count)
        for number, source in enumerate(self._sources):
            source.fill(tensor, piece.first, sums.wide(number))
        # Of equal infinities other weights than those between 0 and 1 make what is no number.
        keeps_equal = self._plan.takes_not_finite or is_kept_apart(tensor.dtype, self._coefficients)
        measures = sums.measure(keeps_equal=keeps_equal)
        if not measures.are_finite and not self._plan.takes_not_finite:
            self._refuse_not_finite(tensor)
        for one in opened:
            out = self._added.take(piece.bytes)
            counts = sums.sum_into(one.coefficients, out)
            self._write(one, out)
            if counts:
                one.not_finite.setdefault(tensor.name, Counts()).add(counts)
        return measures

    def _copy(self, piece: Piece, opened: Sequence[_Open]) -> None:
        (raw,) = piece.raws
        assert raw is not None
        for one in opened:
            out = self._added.take(piece.bytes)
            np.copyto(out, raw)
            self._write(one, out)

    def _refuse_not_finite(self, tensor: Tensor) -> None:
        """Squares may be infinite where no element is."""
        for number, source in enumerate(self._sources):
            nan, infinite = self._sums.not_finite(number)
            if nan or infinite:
                raise NotFinite(source.path, tensor.name, nan, infinite)

    def _write(self, one: _Open, out: Raw) -> None:
        self._added.give(self._lanes.put(one.lane, one.shard.write, out.data))
        one.unsynced_bytes += out.size
        if one.unsynced_bytes >= _SYNC_BYTES:
            one.unsynced_bytes = 0
            self._disk.put(0, self._sync, one.shard)

    def _sync(self, shard: Shard) -> None:
        if not self._given_up.is_set():
            shard.sync()


def _change(measures: Measures) -> Change:
    first, *others = measures.squares
    known = 0 < first < float("inf")
    return Change(
        relative=tuple((one / first) ** 0.5 if known and one < float("inf") else None for one in others),
        unchanged=tuple(count / measures.elements for count in measures.equal),
    )


def _record(plan: Plan, recipe: Recipe, output: Output, hashed: Mapping[Path, FileRecord]) -> MergeRecord:
    inputs = [
        InputRecord(path=str(source.path.resolve()), files={path.name: hashed[path] for path in source.files})
        for source in plan.sources
    ]
    base = inputs.pop(0) if plan.base is not None else None
    tensors = [tensor for tensors in plan.shards.values() for tensor in tensors]
    shards = [output.done[name] for name in plan.shards]
    return MergeRecord(
        rkgrade=VERSION,
        plan=output.plan,
        formula=plan.formula(recipe),
        alpha=recipe.alpha,
        weights=recipe.coefficients,
        inputs=tuple(inputs),
        base=base,
        outputs={one.file: one.written for one in shards},
        tensors=len(tensors),
        parameters=sum(tensor.elements for tensor in tensors),
        left_out=tuple(sorted(plan.left_out)),
        not_finite={name: counts for one in shards for name, counts in one.not_finite.items()},
        changes={name: change for one in shards for name, change in one.changes.items()},
    )


def _companions(plan: Plan, record: MergeRecord) -> Iterator[tuple[str, bytes]]:
    """The files of an output that are no tensors."""
    for path in plan.template.companions:
        try:
            yield path.name, path.read_bytes()
        except OSError as error:
            raise BadCheckpoint(path, error.strerror or str(error)) from error
    if plan.template.has_index:
        mapped = {tensor.name: name for name, tensors in plan.shards.items() for tensor in tensors}
        total = sum(tensor.bytes for tensors in plan.shards.values() for tensor in tensors)
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(mapped.items()))}
        yield INDEX, (json.dumps(index, indent=2) + "\n").encode()
    yield records.CARD, records.card(record).encode()
