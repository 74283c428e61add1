"""The merge itself: one pass over the inputs, piece by piece, into every output at once.

The pass follows the files of the template, and so do the outputs. One thread reads and adds, one writes and hashes what
is written, one hashes the inputs. Memory depends on the size of none of them. Knows no terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol

import numpy as np

from rl_client.merge import records
from rl_client.merge.arithmetic import FLOATS, PIECE, Counts, Measures, Piece, Raw, is_kept_apart
from rl_client.merge.checkpoint import INDEX
from rl_client.merge.errors import BadCheckpoint, NotFinite
from rl_client.merge.hashing import Hashing
from rl_client.merge.headers import Tensor
from rl_client.merge.output import Output, Shard
from rl_client.merge.plan import VERSION, Plan, check_room, check_unchanged, stamps_of
from rl_client.merge.recipes import Recipe
from rl_client.merge.records import Change, FileRecord, InputRecord, MergeRecord, NotFiniteRecord, ShardRecord

#: Buffers of pieces on their way to the disk.
_BUFFERS = 4


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
    not_finite: dict[str, Counts] = field(default_factory=dict)

    def end(self, name: str, changes: dict[str, Change]) -> None:
        written = self.shard.close()
        counts = {tensor: NotFiniteRecord.of(one) for tensor, one in self.not_finite.items()}
        self.output.add(ShardRecord(file=name, written=written, not_finite=counts, changes=changes))


def merge(plan: Plan, watcher: Watcher) -> list[Output]:
    """Write every output, in the order of the recipes. Those that are there, and files that an interrupted merge has
    done, stay as they are. Raises MergeError; what is whole by then is kept, and merging again goes on from there.
    """
    stamps = stamps_of(plan.files)
    outputs = [Output(plan.out / recipe.name, plan.identity(recipe, stamps)) for recipe in plan.recipes]
    todo = [(one, recipe) for one, recipe in zip(outputs, plan.recipes, strict=True) if not one.is_whole]
    sizes = {name: sum(tensor.bytes for tensor in tensors) for name, tensors in plan.shards.items()}
    left = sum(size for output, _ in todo for name, size in sizes.items() if name not in output.done)
    watcher.planned(left)
    if not todo:
        return outputs
    check_room(plan.out, left, len(todo))
    with ExitStack() as stack:
        for output, _ in todo:
            stack.enter_context(output.begun())
        hashes = stack.enter_context(Hashing(plan.files))
        with _Pass(plan, watcher) as run:
            for name, tensors in plan.shards.items():
                run.shard(name, tensors, [one for one in todo if name not in one[0].done])
        hashed = {path: hashes.of(path) for path in plan.files}
        check_unchanged(stamps)
        for output, recipe in todo:
            record = _record(plan, recipe, output, hashed)
            output.finish(record, dict(_companions(plan, record)))
    return outputs


class _Pass:
    """One pass over the inputs; as a context manager ends when everything is on the disk."""

    def __init__(self, plan: Plan, watcher: Watcher) -> None:
        self._plan = plan
        self._watcher = watcher
        self._sources = plan.sources
        largest = max((self._step(one) for tensors in plan.shards.values() for one in tensors), default=PIECE)
        self._piece = Piece(len(self._sources), largest, deltas=plan.base is not None)
        self._coefficients = [plan.coefficients(recipe) for recipe in plan.recipes]
        self._writer = ThreadPoolExecutor(1, "writing")
        self._buffers = [np.empty(largest * 8, np.uint8) for _ in range(_BUFFERS)]
        self._busy: list[Future[None]] = []
        self._turn = 0
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
            # Files that are written and only not on the disk yet are not given up.
            for write in self._busy:
                write.cancel()
            self._writer.shutdown()
            for one in self._opened:
                one.shard.drop()

    def shard(self, name: str, tensors: Sequence[Tensor], todo: Sequence[tuple[Output, Recipe]]) -> None:
        """Write a file of each of these outputs."""
        if not todo:
            return
        for end in filter(Future.done, self._ends):
            end.result()
        opened: list[_Open] = []
        for output, recipe in todo:
            shard = output.shard(name, self._plan.head(recipe, tensors))
            opened.append(_Open(output, self._plan.coefficients(recipe), shard))
            self._opened.append(opened[-1])
        changes = {}
        for tensor in tensors:
            measures = self._tensor(tensor, opened)
            if measures is not None:
                changes[tensor.name] = _change(measures)
        self._settle()
        self._ends += [self._writer.submit(one.end, name, changes) for one in opened]

    def _step(self, tensor: Tensor) -> int:
        """Elements of a piece of this tensor: whole rows of it, where an adapter adds to them."""
        row = max(source.row(tensor) for source in self._sources)
        return max(PIECE // row, 1) * row

    def _tensor(self, tensor: Tensor, opened: Sequence[_Open]) -> Measures | None:
        """Of a tensor that is averaged, and has elements."""
        step = self._step(tensor)
        measures: Measures | None = None
        for first in range(0, tensor.elements, step):
            count = min(step, tensor.elements - first)
            if tensor.dtype in FLOATS:
                piece = self._average(tensor, first, count, opened)
                if measures is None:
                    measures = piece
                else:
                    measures.add(piece)
            else:
                raw = self._sources[0].raw(tensor, first, count)
                assert raw is not None
                for one in opened:
                    out = self._free(raw.size)
                    np.copyto(out, raw)
                    self._write(one, out)
            self._watcher.advanced(count * tensor.item_bytes * len(opened))
        return measures

    def _average(self, tensor: Tensor, first: int, count: int, opened: Sequence[_Open]) -> Measures:
        piece = self._piece
        piece.begin(tensor.dtype, [source.raw(tensor, first, count) for source in self._sources], count)
        for number, source in enumerate(self._sources):
            source.fill(tensor, first, piece.wide(number))
        measures = piece.measure(keeps_equal=is_kept_apart(tensor.dtype, self._coefficients))
        if not measures.are_finite and not self._plan.takes_not_finite:
            self._refuse_not_finite(tensor)
        for one in opened:
            out = self._free(count * tensor.item_bytes)
            counts = piece.sum_into(one.coefficients, out)
            self._write(one, out)
            if counts:
                one.not_finite.setdefault(tensor.name, Counts()).add(counts)
        return measures

    def _refuse_not_finite(self, tensor: Tensor) -> None:
        """Squares may be infinite where no element is."""
        for number, source in enumerate(self._sources):
            nan, infinite = self._piece.not_finite(number)
            if nan or infinite:
                raise NotFinite(source.path, tensor.name, nan, infinite)

    def _free(self, size: int) -> Raw:
        """The next buffer, when what was in it is written."""
        if len(self._busy) == _BUFFERS:
            self._busy.pop(0).result()
        self._turn = (self._turn + 1) % _BUFFERS
        return self._buffers[self._turn][:size]

    def _write(self, one: _Open, out: Raw) -> None:
        self._busy.append(self._writer.submit(one.shard.write, out.data))

    def _settle(self) -> None:
        while self._busy:
            self._busy.pop(0).result()


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
