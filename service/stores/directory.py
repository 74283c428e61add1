"""A directory that hosts share, as a filesystem of fsspec's, where whoever else may write has laid what they like.

So nothing there is followed, waited for or written into: a link or a pipe under a file's name is no file, and gives way
to one; a link under a folder's name is no folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SharedDirectory(LocalFileSystem):  # type: ignore[misc]
    """Of what fsspec has, `cat_file`, `pipe_file` and `find` are other ones, of paths below `root`."""

    def __init__(self, root: str) -> None:
        """`root`: the operator's own; what leads there may have links."""
        super().__init__()
        self._root = root

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Raises FileNotFoundError for what is no file, too."""
        with self._folder_of(path) as (folder, name):
            try:
                # A pipe that nobody writes to would be waited for.
                fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENXIO):
                    raise FileNotFoundError(path) from error
                raise
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileNotFoundError(path)
            with os.fdopen(fd, "rb", closefd=False) as file:
                file.seek(start or 0)
                return file.read(-1 if end is None else end - (start or 0))
        finally:
            os.close(fd)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """The file appears whole or not at all, and its folder where there was none."""
        with self._folder_of(path, make=True) as (folder, name):
            aside = f".new-{uuid.uuid4().hex}"
            fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(value)
                os.replace(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(aside, dir_fd=folder)
                raise

    def find(self, path: str, **_: Any) -> dict[str, dict[str, Any]]:
        """Plain files in that folder and below, with the size and time of each; none where there is no such folder."""
        found = {}
        for folder, names, at in _walk(path):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    info = os.stat(name, dir_fd=at, follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode):
                        found[f"{folder}/{name}"] = {"size": info.st_size, "mtime": info.st_mtime}
        return found

    def remove_below(self, path: str, names: Collection[str]) -> None:
        """Remove these files, named as `find` does, where they are in that folder or below."""
        doomed = frozenset(names)
        for folder, there, at in _walk(path):
            for name in there:
                if f"{folder}/{name}" in doomed:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=at)

    @contextlib.contextmanager
    def _folder_of(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """A descriptor of the folder that the file is in, and its name there. Raises FileNotFoundError where there is
        no such folder, unless it is to be made.
        """
        *folders, name = Path(path).relative_to(self._root).parts
        if make:
            Path(self._root).mkdir(parents=True, exist_ok=True)
        at = os.open(self._root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for folder in folders:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder, dir_fd=at)
                outer, at = at, _opened(folder, at)
                os.close(outer)
            yield at, name
        finally:
            os.close(at)


def _opened(folder: str, at: int) -> int:
    """Raises FileNotFoundError for what is no folder, too."""
    try:
        return os.open(folder, _FOLDER, dir_fd=at)
    except NotADirectoryError as error:
        # What a link is, too, with both flags.
        raise FileNotFoundError(folder) from error


def _walk(path: str) -> Iterator[tuple[str, list[str], int]]:
    """Each folder with the names in it that are none, and a descriptor of it: a path might lead elsewhere by now."""
    for folder, _, names, at in os.fwalk(path, follow_symlinks=False):
        yield folder, names, at
