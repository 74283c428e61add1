"""Compiling in a cell, and the cache that all workers of a host share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import languages
from sandbox.compiling import LIMITS, MESSAGE_BYTES, CompileCache, Compiled, Compiler, as_file, cache_key
from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.languages import REGISTRY
from sandbox.problem import CompileResult, Submission
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, ROOMY, problem

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
    assert len(keys) == 5


def test_the_key_tells_flags_from_source() -> None:
    """Moving a byte from the end of the command to the start of the source is another program."""
    assert cache_key(replace(C, compile=("gcc", "ab")), b"c") != cache_key(replace(C, compile=("gcc", "a")), b"bc")


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


# ---------------------------------------------------------------------------------------------------------------
# Compiling in cells

RUNS = problem((b"", b"7"))


@pytest.fixture
def counted(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """The sources that were really compiled, each in a cell."""
    compiled: list[bytes] = []
    original = Compiler._compile

    def compile_and_count(
        self: Compiler, language: languages.Language, source: bytes, key: str, cancel_fd: int | None
    ) -> Compiled:
        compiled.append(source)
        return original(self, language, source, key, cancel_fd)

    monkeypatch.setattr(Compiler, "_compile", compile_and_count)
    yield compiled


def compile_twice(judge: Judge, language: str, source: bytes) -> list[CompileResult]:
    results = [judge.judge(Submission(RUNS, language, source, ROOMY)).compile for _ in range(2)]
    assert all(result is not None for result in results)
    return [result for result in results if result is not None]


@pytest.mark.jail
def test_a_source_is_compiled_once(judge: Judge, counted: list[bytes]) -> None:
    source = b'#include <stdio.h>\nint main(void) { puts("7"); /* once */ }\n'
    first, second = compile_twice(judge, "c", source)
    assert counted == [source]
    assert (first.ok, first.cached, second.ok, second.cached) == (True, False, True, True)
    assert first.cpu_s > 0 == second.cpu_s


@pytest.mark.jail
def test_a_cached_program_runs_like_a_new_one(judge: Judge) -> None:
    submission = Submission(RUNS, "c", b'#include <stdio.h>\nint main(void) { puts("7"); /* again */ }\n', ROOMY)
    verdicts = [result.verdict for _ in range(3) for result in judge.judge(submission).tests]
    assert verdicts == [Verdict.ACCEPTED] * 3


@pytest.mark.jail
def test_a_failure_is_kept_with_its_message(judge: Judge, counted: list[bytes]) -> None:
    source = b"int main(void) { return nothing_of_the_kind; }\n"
    first, second = compile_twice(judge, "c", source)
    assert counted == [source]
    assert (first.ok, second.ok, second.cached) == (False, False, True)
    assert "nothing_of_the_kind" in first.message
    assert second.message == first.message


@pytest.mark.jail
def test_warnings_are_told_and_kept(judge: Judge) -> None:
    first, second = compile_twice(judge, "c", b'#warning careful\n#include <stdio.h>\nint main(void) { puts("7"); }\n')
    assert (first.ok, second.ok) == (True, True)
    assert "careful" in first.message
    assert second.message == first.message


#: Minutes of evaluation at compile time, in little memory.
BOMB = b"""
constexpr unsigned f(unsigned n, unsigned m) { return n < 2 ? m : f(n - 1, m * 3 + 1) + f(n - 2, m * 5 + 2); }
#define R(k) static_assert(f(20, k) != 1, "");
#define R8(k) R(k) R(k + 1) R(k + 2) R(k + 3) R(k + 4) R(k + 5) R(k + 6) R(k + 7)
#define R64(k) R8(k) R8(k + 8) R8(k + 16) R8(k + 24) R8(k + 32) R8(k + 40) R8(k + 48) R8(k + 56)
#define R512(k) R64(k) R64(k + 64) R64(k + 128) R64(k + 192) R64(k + 256) R64(k + 320) R64(k + 384) R64(k + 448)
R512(0) R512(1000) R512(2000) R512(3000) R512(4000) R512(5000) R512(6000) R512(7000)
int main() {}
"""


@pytest.mark.jail
@pytest.mark.parametrize(
    ("tighter", "source", "message"),
    [
        ({"cpu_s": 1.0}, BOMB, "compiling took more than 1 s of CPU time"),
        ({"wall_s": 0.5}, BOMB, "compiling took more than 0.5 s\n"),
        ({"memory_bytes": 32 * MB}, b"#include <bits/stdc++.h>\nint main() {}\n", "compiling needed more than 32 MiB"),
    ],
    ids=["cpu", "wall", "memory"],
)
def test_a_failure_of_the_limits_is_told_and_not_kept(
    judge: Judge,
    sandbox_config: SandboxConfig,
    monkeypatch: pytest.MonkeyPatch,
    tighter: dict[str, float],
    source: bytes,
    message: str,
) -> None:
    """They depend on the hour: the next worker may succeed. Lower ones than the real save waiting."""
    monkeypatch.setattr("sandbox.compiling.LIMITS", replace(LIMITS, **tighter))  # type: ignore[arg-type]
    result = judge.judge(Submission(RUNS, "cpp", source, ROOMY)).compile
    assert result is not None
    assert not result.ok
    assert result.message.startswith(message)
    assert CompileCache(sandbox_config).get(cache_key(CPP, source)) is None


HOSTILE = {
    "zero": b'#include "/dev/zero"\n',
    "stdin": b'#include "/dev/stdin"\nint main(void) {}\n',
    "own_memory": b'#include "/proc/self/mem"\n',
    "warden": b'#include "/rkgrade/warden.py"\n',
    "embedded_warden": b'__asm__(".incbin \\"/proc/1/exe\\"");\nint main(void) {}\n',
    "embedded_passwords": b'__asm__(".incbin \\"/etc/shadow\\"");\nint main(void) {}\n',
    "host_files": b'#include "/etc/hostname"\n#include "/proc/1/environ"\n#include "/home"\n',
    "endless_macro": b"#define A B B B B B B B B\n#define B C C C C C C C C\n#define C D D D D D D D D\n"
    b"#define D E E E E E E E E\n#define E F F F F F F F F\n#define F 1;1;1;1;1;1;1;1;\nint main(void) { A }\n",
}
#: Reads nothing or what is the compiler's own; whatever it comes to, it ends.
MAY_COMPILE = {"stdin", "endless_macro"}


@pytest.mark.jail
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_sources_end_cleanly(judge: Judge, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.compiling.LIMITS", replace(LIMITS, cpu_s=2.0, memory_bytes=512 * MB))
    judgement = judge.judge(Submission(RUNS, "c", HOSTILE[name], ROOMY))
    assert judgement.compile is not None
    assert not judgement.compile.ok or name in MAY_COMPILE
    assert len(judgement.compile.message) <= 2 * MESSAGE_BYTES
    assert "root:" not in judgement.compile.message


# ---------------------------------------------------------------------------------------------------------------
# Many workers

WORKER = """
import sys
from pathlib import Path
from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.problem import Submission
from tests.sandbox.cells import ROOMY, UID_BASE, problem
judge = Judge(SandboxConfig(Path(sys.argv[1]), uid_base=UID_BASE), slot=int(sys.argv[2]), core=None)
judge.warm()
print("ready", flush=True)
source = sys.stdin.read().encode()
judgement = judge.judge(Submission(problem((b"", b"7")), "cpp", source, ROOMY))
print(judgement.compile.cached, judgement.tests[0].verdict)
judge.close()
"""


@pytest.mark.jail
def test_workers_at_once_compile_a_source_once(sandbox_config: SandboxConfig) -> None:
    source = "#include <bits/stdc++.h>\nint main() { std::cout << 7; } // by several workers at once\n"
    command = [sys.executable, "-c", WORKER, str(sandbox_config.data_dir)]
    workers = [
        subprocess.Popen([*command, str(slot)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for slot in (2, 3, 4)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(source)
        worker.stdin.close()
        worker.stdin = None
    answers = sorted(worker.communicate(timeout=100)[0] for worker in workers)
    assert answers == ["False accepted\n", "True accepted\n", "True accepted\n"]
