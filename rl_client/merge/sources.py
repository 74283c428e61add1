"""What sums are made of: the tensors of a checkpoint, or what a LoRA adapter adds to a base's."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol

import numpy as np

from rl_client.merge.arithmetic import Raw, Wide
from rl_client.merge.checkpoint import Checkpoint
from rl_client.merge.errors import BadCheckpoint
from rl_client.merge.headers import Tensor


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

    def raw(self, tensor: Tensor, first: int, count: int) -> Raw | None:
        """A piece of a tensor as it lies in a file, in elements, until the next is asked for; None where it is not
        read but computed.
        """
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
        self._buffer = np.empty(0, np.uint8)

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

    def raw(self, tensor: Tensor, first: int, count: int) -> Raw:
        held = self._tensors[tensor.name]
        wanted, at = count * held.item_bytes, held.offset + first * held.item_bytes
        if self._buffer.size < wanted:
            self._buffer = np.empty(wanted, np.uint8)
        into = self._buffer[:wanted]
        try:
            if held.path not in self._opened:
                self._opened[held.path] = os.open(held.path, os.O_RDONLY | os.O_CLOEXEC)
                os.posix_fadvise(self._opened[held.path], 0, 0, os.POSIX_FADV_SEQUENTIAL)
            done = 0
            while done < wanted:
                got = os.preadv(self._opened[held.path], [into.data[done:]], at + done)
                if not got:
                    raise BadCheckpoint(held.path, f"ends within tensor {held.name}")
                done += got
        except OSError as error:
            raise BadCheckpoint(held.path, error.strerror or str(error)) from error
        return into

    def fill(self, tensor: Tensor, first: int, into: Wide) -> None:
        pass
