"""Compiling in a cell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox import languages
from sandbox.cell import Cell
from sandbox.compiling import LIMITS, MESSAGE_BYTES, CompileCache, Compiled, Compiler, cache_key
from sandbox.config import SandboxConfig
from sandbox.errors import HostOutOfMemory
from sandbox.judge import Judge
from sandbox.languages import REGISTRY
from sandbox.problem import CompileResult, Limits, Submission
from sandbox.run import RunRecord, RunRequest
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, ROOMY, problem

C, CPP = REGISTRY["c"], REGISTRY["cpp"]


# ---------------------------------------------------------------------------------------------------------------
# Compiling in cells

RUNS = problem((b"", b"7"))


@pytest.fixture
def counted(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """The sources that were really compiled, each in a cell."""
    compiled: list[bytes] = []
    original = Compiler._compile

    def compile_and_count(
        self: Compiler, language: languages.Language, source: bytes, key: str, limits: Limits, cancel_fd: int | None
    ) -> Compiled:
        compiled.append(source)
        return original(self, language, source, key, limits, cancel_fd)

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


@pytest.mark.jail
@pytest.mark.parametrize(("language", "source"), [("c", b"int main(void) { return 0; } /**/\n"), ("python", b"0\n")])
def test_a_compiler_that_the_hosts_want_of_memory_killed_is_a_fault_of_ours(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, language: str, source: bytes
) -> None:
    """The kernel's word is made up here: no host is to be had that runs out of memory."""
    run = Cell.run

    def killed(self: Cell, request: RunRequest, cancel_fd: int | None = None) -> RunRecord:
        return replace(run(self, request, cancel_fd), killed_by_host=True)

    submission = Submission(problem((b"", b"")), language, source, ROOMY)
    monkeypatch.setattr(Cell, "run", killed)
    with pytest.raises(HostOutOfMemory):
        judge.judge(submission)
    monkeypatch.undo()
    # And nothing is kept of it.
    result = judge.judge(submission).compile
    assert result is not None
    assert (result.ok, result.cached) == (True, False)


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
        # Where others took the core from it, it tries again for as long as it takes: for its CPU time, then.
        ({"wall_s": 0.5, "cpu_s": 2.0}, BOMB, "compiling took more than (0.5 s\n|2 s of CPU time)"),
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
    assert re.match(message, result.message)
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


#: Another judge of this host, never idle, but it waits while somebody is to be alone.
BUSY = """
import sys, time
from pathlib import Path
from sandbox.pressure import Turn
turn = Turn(Path(sys.argv[1]))
while True:
    with turn.shared():
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
"""


@pytest.mark.jail
def test_a_compiler_that_others_kept_from_its_core_tries_once_more_alone(
    judge: Judge, sandbox_config: SandboxConfig, monkeypatch: pytest.MonkeyPatch, counted: list[bytes]
) -> None:
    source = b"#include <bits/stdc++.h>\nint main() { std::cout << 7; } // alone: "
    cores = len(os.sched_getaffinity(0))
    alone = judge.judge(Submission(RUNS, "cpp", source + b"first", ROOMY)).compile
    assert alone is not None
    assert alone.ok
    # Alone it takes as long as it works; among so many, nine times that.
    monkeypatch.setattr("sandbox.compiling.LIMITS", replace(LIMITS, wall_s=4 * alone.cpu_s))
    busy = [
        subprocess.Popen([sys.executable, "-c", BUSY, str(sandbox_config.locks_dir)], start_new_session=True)
        for _ in range(8 * cores)
    ]
    try:
        time.sleep(1)
        result = judge.judge(Submission(RUNS, "cpp", source + b"second", ROOMY)).compile
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert result is not None
    assert counted == [source + b"first", *[source + b"second"] * 2]
    assert result.ok, result.message
