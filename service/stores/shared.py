"""Problems in a store that hosts share, named by URL and served by fsspec, such as `s3://bucket/problems`.

What is used here lies in a directory of this host's, too: a `ProblemStore`, which may be bounded, and tells by ids
whether a file is whole. Whoever is told an id finds its problem in the shared store. No problem is ever removed there.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from service.stores.problems import CorruptProblem, ProblemStore, UnknownProblem
from service.stores.remote import Remote

#: Ids that are remembered to be in the shared store.
_MOST_REMEMBERED = 10_000

#: What is kept here unless told otherwise: what makes room is not lost, and no host's disk is as large as a bucket.
_CACHE_BYTES = 4 * 2**30


def open_store(
    directory: Path,
    url: str | None,
    *,
    limit_bytes: int | None = None,
    removed: Callable[[int], None] = lambda _: None,
) -> ProblemStore:
    """The store at `url`, with `directory` for a cache; or `directory` itself where `url` is None.

    A URL of a directory is opened as one, whoever else may share it. `limit_bytes`, `removed`: as of ProblemStore.
    Raises ValueError where the URL names nothing that fsspec serves here.
    """
    if url is None:
        return ProblemStore(directory, limit_bytes=limit_bytes, removed=removed)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return ProblemStore(Path(url2pathname(parts.path)) / "problems", limit_bytes=limit_bytes, removed=removed)
    return SharedProblems(directory, url, limit_bytes=limit_bytes, removed=removed)


class SharedProblems(ProblemStore):
    """See `ProblemStore`; raises StoreUnreachable, too. Kept within a bound here in any case."""

    def __init__(
        self,
        directory: Path,
        url: str,
        *,
        limit_bytes: int | None = None,
        removed: Callable[[int], None] = lambda _: None,
    ) -> None:
        bound = _CACHE_BYTES if limit_bytes is None else limit_bytes
        super().__init__(directory, limit_bytes=bound, removed=removed, in_use_s=0.0)
        self._remote = Remote(url)
        # Several threads ask, and each may learn something.
        self._lock = threading.Lock()
        self._there: dict[str, None] = {}

    def put(self, content: Iterable[bytes]) -> tuple[str, bool]:
        identifier, _ = super().put(content)
        return identifier, self._share(identifier)

    def contains(self, identifier: str) -> bool:
        return identifier in self._there or self._is_there(identifier)

    def get(self, identifier: str) -> bytes:
        with contextlib.suppress(UnknownProblem, CorruptProblem):
            return super().get(identifier)
        content = self._remote.read(self._name(identifier))
        if content is None:
            raise UnknownProblem(identifier)
        stored, _ = super().put([content])
        if stored != identifier:
            raise CorruptProblem(identifier)
        self._note(identifier)
        return content

    def size(self, identifier: str) -> int | None:
        known = super().size(identifier)
        return self._size_there(identifier) if known is None else known

    def remembers(self, identifier: str) -> bool:
        return identifier in self._there and super().remembers(identifier)

    def doubt(self, identifier: str) -> None:
        super().doubt(identifier)
        with self._lock:
            self._there.pop(identifier, None)

    def _share(self, identifier: str) -> bool:
        """Whether it is new there. Raises StoreFull."""
        if self._is_there(identifier):
            return False
        self._remote.write(self._name(identifier), super().get(identifier))
        self._note(identifier)
        return True

    def _is_there(self, identifier: str) -> bool:
        """Under its name, of the length that it must have where that is known here."""
        length, known = self._size_there(identifier), super().size(identifier)
        if length is None or (known is not None and known != length):
            return False
        self._note(identifier)
        return True

    def _size_there(self, identifier: str) -> int | None:
        try:
            return self._remote.size(self._name(identifier))
        except UnknownProblem:
            return None

    def _name(self, identifier: str) -> str:
        return str(self._path(identifier).relative_to(self._directory))

    def _note(self, identifier: str) -> None:
        with self._lock:
            self._there[identifier] = None
            while len(self._there) > _MOST_REMEMBERED:
                del self._there[next(iter(self._there))]
