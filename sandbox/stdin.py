"""A test's input as the kernel object that programs read: one sealed memfd, shared by every run of that test."""

from __future__ import annotations

import fcntl
import os
import weakref


class Stdin:
    """Input bytes of one test. The memfd is made on first use, so that loading a problem costs no descriptors."""

    __slots__ = ("__weakref__", "_data", "_fd", "_length")

    def __init__(self, data: bytes) -> None:
        self._data: bytes | None = data
        self._length = len(data)
        self._fd: int | None = None

    def __len__(self) -> int:
        return self._length

    def open(self) -> int:
        """A new read-only descriptor at offset 0; the caller closes it."""
        if self._fd is None:
            self._fd = self._seal()
            self._data = None
            weakref.finalize(self, os.close, self._fd)
        # The time of the last reading is to the nanosecond, and would be a note from one submission to the next.
        os.utime(self._fd, (0, 0))
        # Through /proc, so that each run has a file offset of its own and no right to write.
        return os.open(f"/proc/self/fd/{self._fd}", os.O_RDONLY | os.O_CLOEXEC)

    def _seal(self) -> int:
        assert self._data is not None
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            view = memoryview(self._data)
            while view:
                view = view[os.write(fd, view) :]
            seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
            # Seals hold the bytes only: extended attributes and times, where one submission could leave word for the
            # next, are open to all who may write, and a memfd is made for all to write.
            os.fchmod(fd, 0o444)
        except BaseException:
            os.close(fd)
            raise
        return fd
