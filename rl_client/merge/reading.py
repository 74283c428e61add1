"""Reads the sources of a merge ahead of what is added, piece by piece, and hashes what it reads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rl_client.merge.arithmetic import FLOATS, PIECE, Raw, widest
from rl_client.merge.hashing import FileHash
from rl_client.merge.headers import Tensor
from rl_client.merge.lanes import Buffers, Lanes
from rl_client.merge.records import FileRecord
from rl_client.merge.sources import Source

#: Pieces that are read at once: threads wait for each other less often, and what is added still fits a core's cache.
_SPAN = 8
#: Of these: one is worked on, one is read, and one is hashed.
_WAITING = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """Elements of a tensor, as the sources that are read have them."""

    tensor: Tensor
    first: int
    count: int
    raws: Sequence[Raw | None]

    @property
    def bytes(self) -> int:
        return self.count * self.tensor.item_bytes


@dataclass(frozen=True, slots=True)
class _Span:
    """Elements of a tensor, which the sources that are read are being asked for."""

    tensor: Tensor
    first: int
    count: int
    reads: Sequence[Future[Raw] | None]

    def pieces(self, step: int) -> Iterator[Piece]:
        """When they are read. Raises BadCheckpoint."""
        raws = [None if one is None else one.result() for one in self.reads]
        for at in range(0, self.count, step):
            count, size = min(step, self.count - at), self.tensor.item_bytes
            within = slice(at * size, (at + count) * size)
            yield Piece(self.tensor, self.first + at, count, [None if raw is None else raw[within] for raw in raws])


class Reading:
    """Of the sources, each in the lane of its number."""

    def __init__(self, sources: Sequence[Source], tensors: Collection[Tensor], lanes: Lanes) -> None:
        """`tensors`: all that will be read."""
        self._sources = sources
        self._lanes = lanes
        self.largest = max(map(self._step, tensors), default=PIECE)
        """Elements of the largest piece."""
        self._unwanted = threading.Event()
        self._hashes = [{path: FileHash(path, self._unwanted) for path in source.files} for source in sources]
        self._buffers = [Buffers(_WAITING, _SPAN * self.largest * 8) for _ in sources]

    def pieces(self, tensors: Sequence[Tensor]) -> Iterator[Piece]:
        """Of all these tensors, in their order. Raises BadCheckpoint."""
        for span in self._spans(tensors):
            yield from span.pieces(self._step(span.tensor))

    def _spans(self, tensors: Sequence[Tensor]) -> Iterator[_Span]:
        """All of these tensors; while one is worked on, the next is read."""
        ahead: deque[_Span] = deque()
        for tensor in tensors:
            step = _SPAN * self._step(tensor)
            # Tensors that are no floats are the same in all.
            numbers = range(len(self._sources) if tensor.dtype in FLOATS else 1)
            for first in range(0, tensor.elements, step):
                count = min(step, tensor.elements - first)
                ahead.append(_Span(tensor, first, count, [self._fetch(one, tensor, first, count) for one in numbers]))
                if len(ahead) > 1:
                    yield ahead.popleft()
        yield from ahead

    def _fetch(self, number: int, tensor: Tensor, first: int, count: int) -> Future[Raw] | None:
        """What a source holds there, if it is one that is read."""
        place = self._sources[number].place(tensor, first)
        if place is None:
            return None
        buffers = self._buffers[number]
        raw = buffers.take(count * tensor.item_bytes)
        read = self._lanes.put(number, place.read, raw)
        buffers.give(self._lanes.put(number, self._hashes[number][place.path].follow, place.offset, raw))
        return read

    def hashed(self) -> dict[Path, FileRecord]:
        """Of all files of the sources, when all is read. Raises BadCheckpoint."""
        for buffers in self._buffers:
            buffers.settle()
        ends = {
            path: self._lanes.put(lane, one.finish)
            for lane, files in enumerate(self._hashes)
            for path, one in files.items()
        }
        return {path: end.result() for path, end in ends.items()}

    def cancel(self) -> None:
        """Nobody wants what is not read and hashed yet."""
        self._unwanted.set()
        for buffers in self._buffers:
            buffers.cancel()

    def _step(self, tensor: Tensor) -> int:
        """Elements of a piece of this tensor: whole rows of it, where an adapter adds to them."""
        row = max(source.row(tensor) for source in self._sources)
        wide = np.dtype(widest(tensor.dtype)).itemsize if tensor.dtype in FLOATS else tensor.item_bytes
        # Neither many sources nor wide types make more of it than two sources in fp32.
        elements = min(PIECE, 16 * PIECE // (wide * (len(self._sources) + 2)))
        return max(elements // row, 1) * row
