"""From source to artefact: compiling in a cell of its own, and the cache that all workers of a host share.

The cache is keyed by content: what is installed on the host, toolchain version, command and source. An entry is a
directory that appears by one rename, whole or not at all. One worker compiles a given source at a time; the others wait
for its entry. Size is bounded by removing what was used longest ago.

Behind it there may be one that hosts share (`SharedPrograms`): asked before a source is compiled, told afterwards.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import select
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from sandbox.cell import Cell
from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled, HostOutOfMemory
from sandbox.languages import Language, version
from sandbox.languages.software import software
from sandbox.problem import CompileResult, Limits
from sandbox.run import Action, RunRecord, RunRequest
from sandbox.starting import compiler_limits
from sandbox.stdin import Stdin

LIMITS = Limits(cpu_s=10.0, wall_s=60.0, memory_bytes=2 * 2**30, output_bytes=256 * 2**20, processes=64)
MESSAGE_BYTES = 8 * 1024
LOCKS = 64
LOOK_AGAIN_S = 0.01

#: Entries kept at most, whatever their size, and puts between two looks at them all: a look costs 20 us an entry. An
#: artefact may be large, so that there is a look, too, whenever so large a part of the bound has been put.
MAX_ENTRIES = 20_000
EVICT_EVERY = 64
EVICT_SHARE = 16


@dataclass(frozen=True, slots=True)
class Compiled:
    result: CompileResult
    artefact_fd: int | None
    """The program, where compiling went well; the caller closes it. Stays readable if the entry is evicted."""


@dataclass(frozen=True, slots=True)
class SharedProgram:
    artefact: bytes
    message: str
    """What the compiler said."""


class SharedPrograms(Protocol):
    """Programs that compiled, as hosts share them. A help, never a condition: neither method raises for a store that
    does not do its part. What it gives was put by a host of the same grader's: it vouches for that.
    """

    def get(self, key: str) -> SharedProgram | None: ...

    def put(self, key: str, program: SharedProgram) -> None: ...


class CompileCache:
    """Entries `<key>/{artefact, result.json}` in one directory."""

    def __init__(
        self, config: SandboxConfig, *, limit_entries: int = MAX_ENTRIES, evict_every: int = EVICT_EVERY
    ) -> None:
        self._directory = config.compiled_dir
        self._limit_bytes = config.compile_cache_bytes
        self._limit_entries = limit_entries
        self._evict_every = evict_every
        self._puts = 0
        self._put_bytes = 0
        self._locks = config.locks_dir
        for path in (self._directory, self._locks):
            path.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self, key: str, cancel_fd: int | None = None) -> Iterator[None]:
        """Hold the only right in this host to make the entry. A fixed number of lock files serves all keys.

        Raises Cancelled once `cancel_fd` is readable.
        """
        with (self._locks / f"compile-{int(key[:8], 16) % LOCKS}").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    # No lock call wakes on a second descriptor. Compiling takes tenths of seconds.
                    if select.select([] if cancel_fd is None else [cancel_fd], [], [], LOOK_AGAIN_S)[0]:
                        raise Cancelled from None
            yield

    def get(self, key: str) -> Compiled | None:
        entry = self._directory / key
        try:
            saved = json.loads((entry / "result.json").read_text())
            result = CompileResult(bool(saved["ok"]), 0.0, True, str(saved["message"]))
            fd = _open_whole(entry / "artefact", saved["sha256"]) if result.ok else None
        except FileNotFoundError:
            if entry.exists():
                shutil.rmtree(entry, ignore_errors=True)  # Of an eviction that was cut short.
            return None
        except (ValueError, KeyError, TypeError):
            # A host that went down may leave files empty whose names are there, a failing disk others' bytes in them.
            # Nobody would ever replace them.
            shutil.rmtree(entry, ignore_errors=True)
            return None
        with contextlib.suppress(FileNotFoundError):  # Evicted just now.
            os.utime(entry)
        return Compiled(result, fd)

    def put(self, key: str, result: CompileResult, artefact_fd: int | None) -> None:
        try:
            temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=self._directory))
        except OSError:
            return
        try:
            digest = None
            size = 0
            if artefact_fd is not None:
                with (temporary / "artefact").open("wb") as target:
                    while sent := os.sendfile(target.fileno(), artefact_fd, size, 1 << 24):
                        size += sent
                with (temporary / "artefact").open("rb") as written:
                    digest = hashlib.file_digest(written, "sha256").hexdigest()
            saved = {"ok": result.ok, "message": result.message, "sha256": digest}
            (temporary / "result.json").write_text(json.dumps(saved))
            temporary.rename(self._directory / key)
            self._put_bytes += size
        except OSError:
            # A full disk, or an entry made meanwhile: the cache is a help, never a condition.
            shutil.rmtree(temporary, ignore_errors=True)
        self._evict()

    def _evict(self) -> None:
        """Now and then, remove what was used longest ago, down to nine tenths of either bound."""
        self._puts += 1
        if self._puts % self._evict_every and self._put_bytes < self._limit_bytes / EVICT_SHARE:
            return
        self._put_bytes = 0
        with (self._locks / "evict").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            entries = []
            for path in self._directory.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    # By blocks, not by length: most entries are an error, a few bytes in a file of a block.
                    size = sum(file.stat().st_blocks * 512 for file in (path, *path.iterdir()))
                    entries.append((path.stat().st_mtime, size, path))
            total = sum(size for _, size, _ in entries)
            left = len(entries)
            if total <= self._limit_bytes and left <= self._limit_entries:
                return
            for _, size, path in sorted(entries):
                if total <= 0.9 * self._limit_bytes and left <= 0.9 * self._limit_entries:
                    return
                shutil.rmtree(path, ignore_errors=True)
                total -= size
                left -= 1

    def sweep(self) -> None:
        """Remove what a writer that died left half-made an hour or longer ago."""
        for path in self._directory.glob(".new-*"):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < time.time() - 3600:
                    shutil.rmtree(path, ignore_errors=True)


def _open_whole(path: Path, sha256: str) -> int:
    """Raises FileNotFoundError; ValueError where the file is not as it was written."""
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise ValueError(f"{path} is damaged")
        file.seek(0)
        return os.dup(file.fileno())


class Compiler:
    """Compiles through the caches; `open_cell` makes the cell for one compilation."""

    def __init__(
        self,
        config: SandboxConfig,
        open_cell: Callable[[], contextlib.AbstractContextManager[Cell]],
        shared: SharedPrograms | None = None,
    ) -> None:
        self._cache = CompileCache(config)
        self._open_cell = open_cell
        self._shared = shared

    def compile(
        self,
        language: Language,
        source: bytes | Mapping[str, bytes],
        cancel_fd: int | None,
        cpu_s: float | None = None,
        *,
        alone: bool = False,
    ) -> Compiled:
        """Compile one file, or several by their names. Raises GraderFault, Cancelled, UnknownLanguage.

        `cpu_s`: CPU time that the compiler has, in place of what it usually has. What was compiled before takes none.
        `alone`: everybody waits for it, and it for nobody, so that its wall time is as short as a program's.
        """
        key = cache_key(language, source)
        if (cached := self._cache.get(key)) is not None:
            return cached
        with self._cache.locked(key, cancel_fd):
            if (cached := self._cache.get(key)) is not None:
                return cached
            if self._shared is not None and (shared := self._shared.get(key)) is not None:
                return self._kept(key, shared)
            limits = compiler_limits(language, LIMITS)
            if cpu_s is not None:
                limits = replace(limits, cpu_s=cpu_s)
            if alone:
                limits = replace(limits, wall_s=None)
            return self._compile(language, source, key, limits, cancel_fd)

    def _kept(self, key: str, shared: SharedProgram) -> Compiled:
        """What another host compiled, in this host's cache from here on."""
        result = CompileResult(True, 0.0, True, shared.message, shared=True)
        with as_file(shared.artefact) as fd:
            self._cache.put(key, result, fd)
            return Compiled(result, os.dup(fd))

    def _compile(
        self,
        language: Language,
        source: bytes | Mapping[str, bytes],
        key: str,
        limits: Limits,
        cancel_fd: int | None,
    ) -> Compiled:
        files = {language.source_name: source} if isinstance(source, bytes) else source
        with self._open_cell() as cell:
            with as_files(files) as source_fds:
                cell.load(source_fds, executable=False)
            with as_file(b"") as stdin_fd:
                request = RunRequest(
                    Action.EXEC,
                    stdin_fd,
                    limits,
                    language.compile,
                    (language.artefact,),
                    limits_address_space=not language.reserves_address_space,
                )
                record = cell.run(request, cancel_fd)
            try:
                if record.killed_by_host:
                    raise HostOutOfMemory("this host ran out of memory for a compiler")
                result = compile_result(record, limits)
                artefact = record.collected.get(language.artefact)
                fd = None if artefact is None else artefact.fd
                if result.ok and fd is None:
                    # The source's doing: a unit or a module where a program should be, or code that runs while it is
                    # compiled (Perl's BEGIN, Nim's static, Template Haskell) and ends the compiler, or takes its file.
                    said = f"the compiler was content, and left no program\n{result.message}"
                    result = replace(result, ok=False, message=said.rstrip("\n"))
                if not result.at_limit:
                    self._cache.put(key, result, fd if result.ok else None)
                if self._shared is not None and result.ok and artefact is not None:
                    self._shared.put(key, SharedProgram(artefact.head(len(artefact)), result.message))
                return Compiled(result, os.dup(fd) if result.ok and fd is not None else None)
            finally:
                record.close()


def cache_key(language: Language, source: bytes | Mapping[str, bytes]) -> str:
    """Names everything the artefact depends on, and whether it runs: hosts of any kind may share it."""
    digest = hashlib.sha256("\0".join([software(), version(language), *language.compile, ""]).encode())
    if language.prebuilt is not None:
        digest.update(repr(language.prebuilt).encode())
    # No source, whatever is in it, is taken for another: nor one file for several.
    files = {"": source} if isinstance(source, bytes) else source
    for name in sorted(files):
        digest.update(f"\0{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()


@contextlib.contextmanager
def as_file(data: bytes) -> Iterator[int]:
    """The bytes as a descriptor at offset 0."""
    fd = Stdin(data).open()
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def as_files(files: Mapping[str, bytes]) -> Iterator[dict[str, int]]:
    """The same for several by their names."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(as_file(data)) for name, data in files.items()}


def hit_limit(record: RunRecord) -> bool:
    """Whether a limit, which depends on the hour, ended the compiler: such a failure is not kept."""
    evidence = record.evidence
    return evidence.over_cpu or evidence.over_wall or evidence.over_memory or evidence.over_output


def compile_result(record: RunRecord, limits: Limits) -> CompileResult:
    """What the compiler's run under these limits says, with a message for people."""
    evidence = record.evidence
    text = (record.stderr.head(MESSAGE_BYTES) or record.stdout.head(MESSAGE_BYTES)).decode(errors="replace")
    at_limit = hit_limit(record)
    ok = evidence.exit_code == 0 and not at_limit
    if evidence.over_memory:
        text = f"compiling needed more than {limits.memory_bytes >> 20} MiB\n{text}"
    elif evidence.over_cpu:
        text = f"compiling took more than {limits.cpu_s:g} s of CPU time\n{text}"
    elif evidence.over_wall:
        text = f"compiling took more than {limits.effective_wall_s:g} s\n{text}"
    elif evidence.over_output:
        text = f"compiling wrote more than {limits.output_bytes >> 20} MiB\n{text}"
    elif evidence.signal is not None:
        text = f"the compiler died of signal {evidence.signal}\n{text}"
    timed_out = (evidence.over_cpu or evidence.over_wall) and not evidence.over_memory
    return CompileResult(ok, record.cpu_s, False, text, at_limit, timed_out)
