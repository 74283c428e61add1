"""What sums are made of: the tensors of a checkpoint, or what a LoRA adapter adds to a base's."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from rl_client.merge.arithmetic import Raw, Wide
from rl_client.merge.checkpoint import Checkpoint
from rl_client.merge.errors import BadCheckpoint
from rl_client.merge.headers import Tensor


@dataclass(frozen=True, slots=True)
class Place:
    """Where a piece of a tensor lies. Places of one source are read by one thread at a time."""

    path: Path
    offset: int
    """In bytes, from the beginning of the file."""
    tensor: str
    file: _OneFile

    def read(self, into: Raw) -> Raw:
        """Fill the buffer with what lies there. Raises BadCheckpoint."""
        fd, done = self.file.descriptor(self.path), 0
        while done < into.size:
            try:
                got = os.preadv(fd, [into.data[done:]], self.offset + done)
            except OSError as error:
                raise BadCheckpoint(self.path, error.strerror or str(error)) from error
            if not got:
                raise BadCheckpoint(self.path, f"ends within tensor {self.tensor}")
            done += got
        return into


class Source(Protocol):
    """One input of a sum."""

    @property
    def path(self) -> Path:
        """Of its folder."""
        ...

    @property
    def files(self) -> Collection[Path]:
        """All that is read of it."""
        ...

    def row(self, tensor: Tensor) -> int:
        """Elements that are asked for together; pieces are multiples of it."""
        ...

    def place(self, tensor: Tensor, first: int) -> Place | None:
        """Where the elements from `first` on lie; None where they are not read but computed."""
        ...

    def fill(self, tensor: Tensor, first: int, into: Wide) -> None:
        """Compute a piece, where it is not read."""
        ...


class Stored:
    """The tensors of a checkpoint. To be used as a context manager; raises BadCheckpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.path = checkpoint.path
        self.files = [checkpoint.path / name for name in checkpoint.files]
        self._tensors: Mapping[str, Tensor] = checkpoint.tensors
        self._file = _OneFile()

    def __enter__(self) -> Stored:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def row(self, tensor: Tensor) -> int:
        return 1

    def place(self, tensor: Tensor, first: int) -> Place:
        held = self._tensors[tensor.name]
        return Place(held.path, held.offset + first * held.item_bytes, held.name, self._file)

    def fill(self, tensor: Tensor, first: int, into: Wide) -> None:
        pass


class _OneFile:
    """Of a checkpoint's files the one that is read: it may have more than a process has descriptors."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._fd = -1

    def descriptor(self, path: Path) -> int:
        """Raises BadCheckpoint."""
        if path != self._path:
            self.close()
            try:
                self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
            except OSError as error:
                raise BadCheckpoint(path, error.strerror or str(error)) from error
            self._path = path
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._path, self._fd = None, -1
