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
    """Where a piece of a tensor lies, in a file that is open."""

    path: Path
    offset: int
    """In bytes, from the beginning of the file."""
    tensor: str
    fd: int

    def read(self, into: Raw) -> Raw:
        """Fill the buffer with what lies there. Raises BadCheckpoint."""
        done = 0
        while done < into.size:
            try:
                got = os.preadv(self.fd, [into.data[done:]], self.offset + done)
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
        self._opened: dict[Path, int] = {}

    def __enter__(self) -> Stored:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fd in self._opened.values():
            os.close(fd)
        self._opened.clear()

    def row(self, tensor: Tensor) -> int:
        return 1

    def place(self, tensor: Tensor, first: int) -> Place:
        held = self._tensors[tensor.name]
        if held.path not in self._opened:
            self._opened[held.path] = _open(held.path)
        return Place(held.path, held.offset + first * held.item_bytes, held.name, self._opened[held.path])

    def fill(self, tensor: Tensor, first: int, into: Wide) -> None:
        pass


def _open(path: Path) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    except OSError as error:
        raise BadCheckpoint(path, error.strerror or str(error)) from error
    return fd
