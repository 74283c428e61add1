"""The cache of compiled programs that all workers of a host share: what an entry depends on, and what becomes of it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import languages
from sandbox.compiling import CompileCache, Compiled, as_file, cache_key
from sandbox.config import SandboxConfig
from sandbox.languages import REGISTRY
from sandbox.problem import CompileResult

C, CPP = REGISTRY["c"], REGISTRY["cpp"]


# ---------------------------------------------------------------------------------------------------------------
# The key


def test_the_key_depends_on_everything_the_artefact_does(monkeypatch: pytest.MonkeyPatch) -> None:
    source = b"int main(void) {}\n"
    other_flags = replace(C, compile=(*C.compile, "-g"))
    keys = {
        cache_key(C, source),
        cache_key(C, source + b"\n"),
        cache_key(CPP, source),
        cache_key(other_flags, source),
    }
    monkeypatch.setattr("sandbox.compiling.version", lambda language: "gcc 99.0")
    keys.add(cache_key(C, source))
    monkeypatch.setattr("sandbox.compiling.software", lambda: "another host's")
    keys.add(cache_key(C, source))
    assert len(keys) == 6


def test_the_key_tells_flags_from_source() -> None:
    """Moving a byte from the end of the command to the start of the source is another program."""
    assert cache_key(replace(C, compile=("gcc", "ab")), b"c") != cache_key(replace(C, compile=("gcc", "a")), b"bc")


def test_the_key_tells_one_file_from_several() -> None:
    """A source that spells out the files of another, say a checker's, would decide what that comes to."""
    several = {"main.cpp": b"int main() {}", "other.h": b"\0\0"}
    spelt = b"".join(f"\0{name}\0{len(text)}\0".encode() + text for name, text in several.items())
    assert cache_key(CPP, spelt) != cache_key(CPP, several)


def test_the_key_is_the_same_for_names_of_one_language() -> None:
    assert cache_key(languages.resolve("C++17"), b"") == cache_key(languages.resolve("cpp"), b"")


# ---------------------------------------------------------------------------------------------------------------
# The cache alone

KEYS = [f"{number:064x}" for number in range(10)]
COMPILED = CompileResult(ok=True, cpu_s=1.0, cached=False, message="a warning")


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    # Room for three small entries: a block for the folder, one for the result, and the artefact's.
    return CompileCache(SandboxConfig(tmp_path, compile_cache_bytes=45_000), limit_entries=100, evict_every=1)


def put(cache: CompileCache, key: str, artefact: bytes) -> None:
    with as_file(artefact) as fd:
        cache.put(key, COMPILED, fd)


def read(compiled: Compiled | None) -> bytes:
    assert compiled is not None
    assert compiled.artefact_fd is not None
    try:
        return os.pread(compiled.artefact_fd, 100_000, 0)
    finally:
        os.close(compiled.artefact_fd)


def has(cache: CompileCache, key: str) -> bool:
    compiled = cache.get(key)
    if compiled is not None and compiled.artefact_fd is not None:
        os.close(compiled.artefact_fd)
    return compiled is not None


def test_what_was_put_is_got(cache: CompileCache) -> None:
    assert cache.get(KEYS[0]) is None
    put(cache, KEYS[0], b"artefact")
    compiled = cache.get(KEYS[0])
    assert compiled is not None
    assert compiled.result == replace(COMPILED, cached=True, cpu_s=0.0)
    assert read(compiled) == b"artefact"


def test_an_entry_is_put_once(cache: CompileCache, tmp_path: Path) -> None:
    """Whoever comes second, after a race, changes nothing and leaves nothing half-made."""
    put(cache, KEYS[0], b"first")
    put(cache, KEYS[0], b"second")
    assert read(cache.get(KEYS[0])) == b"first"
    assert [path.name for path in (tmp_path / "compiled").iterdir()] == [KEYS[0]]


def test_size_is_bounded_by_removing_what_was_used_longest_ago(cache: CompileCache, tmp_path: Path) -> None:
    for key in KEYS[:3]:
        put(cache, key, b"x" * 3000)
        os.utime(tmp_path / "compiled" / key, (1000, 1000 + int(key, 16)))
    assert has(cache, KEYS[0])  # Used, and so the youngest.
    put(cache, KEYS[3], b"x" * 3000)
    assert [has(cache, key) for key in KEYS[:4]] == [True, False, True, True]


def test_size_is_bounded_whenever_much_was_put(tmp_path: Path) -> None:
    """A program may be a quarter of a gigabyte: many such are not to wait for the next look at all entries."""
    cache = CompileCache(SandboxConfig(tmp_path, compile_cache_bytes=200_000))
    for number in range(40):
        put(cache, f"{number:064x}", b"x" * 20_000)
        kept = list((tmp_path / "compiled").iterdir())
        assert sum(file.stat().st_blocks * 512 for path in kept for file in (path, *path.iterdir())) < 250_000


def test_one_entry_beyond_the_bound_stays_readable_for_who_has_it(cache: CompileCache) -> None:
    put(cache, KEYS[0], b"x" * 25_000)
    compiled = cache.get(KEYS[0])
    put(cache, KEYS[1], b"y" * 25_000)
    assert not has(cache, KEYS[0])
    assert read(compiled) == b"x" * 25_000
    put(cache, KEYS[2], b"z" * 60_000)
    assert not any(has(cache, key) for key in KEYS)


def test_the_number_of_entries_is_bounded_too(tmp_path: Path) -> None:
    """Most of what is compiled in training fails, and comes to a few bytes."""
    cache = CompileCache(SandboxConfig(tmp_path), limit_entries=20, evict_every=4)
    keys = [f"{number:064x}" for number in range(40)]
    for number, key in enumerate(keys):
        cache.put(key, CompileResult(ok=False, cpu_s=0.1, cached=False, message="error"), None)
        os.utime(tmp_path / "compiled" / key, (1000, 1000 + number))
    kept = [key for key in keys if has(cache, key)]
    assert 18 <= len(kept) <= 20 + 4
    assert kept == keys[-len(kept) :]


def test_an_entry_whose_eviction_was_cut_short_is_made_anew(cache: CompileCache, tmp_path: Path) -> None:
    put(cache, KEYS[0], b"artefact")
    (tmp_path / "compiled" / KEYS[0] / "artefact").unlink()
    assert cache.get(KEYS[0]) is None
    put(cache, KEYS[0], b"anew")
    assert read(cache.get(KEYS[0])) == b"anew"


@pytest.mark.parametrize("name", ["result.json", "artefact"])
@pytest.mark.parametrize("damage", [b"", b"{", b"\x00" * 30, b"[1]", b"null", b"artefacT"])
def test_an_entry_that_a_crash_of_the_host_damaged_is_made_anew(
    cache: CompileCache, tmp_path: Path, name: str, damage: bytes
) -> None:
    put(cache, KEYS[0], b"artefact")
    (tmp_path / "compiled" / KEYS[0] / name).write_bytes(damage)
    assert cache.get(KEYS[0]) is None
    put(cache, KEYS[0], b"anew")
    assert read(cache.get(KEYS[0])) == b"anew"


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    cache = CompileCache(SandboxConfig(tmp_path))
    (tmp_path / "compiled").rmdir()
    put(cache, KEYS[0], b"artefact")
    assert cache.get(KEYS[0]) is None


def test_sweep_removes_what_a_dead_writer_left_and_nothing_of_a_living_one(cache: CompileCache, tmp_path: Path) -> None:
    for name, age_s in ((".new-dead", 7200), (".new-living", 60)):
        path = tmp_path / "compiled" / name
        path.mkdir()
        (path / "artefact").write_bytes(b"half")
        os.utime(path, (time.time() - age_s,) * 2)
    put(cache, KEYS[0], b"artefact")
    cache.sweep()
    assert sorted(path.name for path in (tmp_path / "compiled").iterdir()) == [".new-living", KEYS[0]]
