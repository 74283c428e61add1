"""Every hostile program gets the verdict its row fixes, and leaves nothing behind on the host."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sandbox import cgroups
from sandbox.checkers.base import Checker
from sandbox.checkers.compare import Exact, Tokens
from sandbox.config import SandboxConfig
from sandbox.errors import Cancelled
from sandbox.judge import Judge
from sandbox.problem import Judgement, Problem, Submission, Test, TestResult
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict
from tests.docker import daemon
from tests.hostile import compiling, endings, escapes, files, leftovers, pythonic, resources
from tests.hostile.case import PYTHONS, ROOMY, Case, Run, program, words
from tests.slowness import SLOWNESS

pytestmark = pytest.mark.jail

CASES = [
    *escapes.CASES,
    *resources.CASES,
    *endings.CASES,
    *leftovers.CASES,
    *files.CASES,
    *compiling.CASES,
    *pythonic.CASES,
]
CHECKERS: dict[str, Checker] = {"tokens": Tokens(), "exact": Exact()}

SLOT = 0

LONGEST_MESSAGE_BYTES = 64 * 1024
#: What 450 submissions may add to the judge's own memory: caches of the interpreter and allocator, no leak.
GROWTH_BYTES = 24 * 2**20


@dataclass(frozen=True, slots=True)
class Footprint:
    """What the judge holds on the host; equal at every moment of rest."""

    jailed_processes: int
    children: int
    groups: int
    descriptors: int
    mounts: tuple[str, ...]
    files: tuple[str, ...]
    shared_memory: tuple[str, ...]


class Bench:
    """A judge with an eye on what it holds."""

    def __init__(self, judge: Judge, config: SandboxConfig, scratch: Path) -> None:
        self._config = config
        self._scratch = scratch
        self._hierarchies = cgroups.here()
        self.judge = judge
        self.children_before = self.footprint().children
        """Of this process, such as the server of other tests: a judge starts none before its first cell."""
        self.grade(Case("first", "c", b'#include <stdio.h>\nint main(void) { puts("held"); }\n', (Run(),)))
        self.judge.warm()
        self.idle = self._settled()
        self.resident_bytes = _resident_bytes()

    def grade(self, case: Case, cancel_fd: int | None = None, cancel_by: int | None = None) -> Judgement:
        tests = tuple(
            Test(index, run.name or None, index, Stdin(run.stdin), run.expected) for index, run in enumerate(case.runs)
        )
        problem = Problem(
            tests,
            CHECKERS[case.checker],
            ignore_exit_code=case.ignore_exit_code,
            input_file=case.input_file,
            output_file=case.output_file,
        )
        submission = Submission(problem, case.language, case.source, case.limits)

        def cancel(_: TestResult) -> None:
            if cancel_by is not None:
                os.write(cancel_by, b"x")

        return self.judge.judge(submission, cancel_fd=cancel_fd, on_test=cancel)

    def footprint(self) -> Footprint:
        owner = f"-{os.getpid()}-"
        processes = [_status(entry, owner) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        parents = {pid: parent for pid, parent, _ in processes}
        config = self._config
        return Footprint(
            jailed_processes=sum(in_group for _, _, in_group in processes),
            children=sum(_descends(pid, os.getpid(), parents) for pid in parents),
            groups=sum(
                1
                for directory in cgroups.owned_directories(self._hierarchies)
                if owner in directory.name
                for _ in directory.rglob("*/")
            ),
            descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            mounts=_mounts(),
            files=tuple(
                sorted(
                    str(path)
                    for top in (self._scratch, config.data_dir)
                    for path in top.rglob("*")
                    if not self._is_expected(path)
                )
            ),
            shared_memory=_shared_memory(config.uid_base),
        )

    def _is_expected(self, path: Path) -> bool:
        """An entry of the compile cache for each source, and the cache's locks, of which there are `LOCKS` at most."""
        if path.name.startswith("."):
            return False
        compiled = self._config.compiled_dir
        return compiled in (path.parent, path.parent.parent) or path.parent == self._config.locks_dir

    def _settled(self, wanted: Footprint | None = None, deadline_s: float = 5.0 * SLOWNESS) -> Footprint:
        """The footprint once it equals the wanted one, or is the same twice; whatever it is at the deadline."""
        until = time.monotonic() + deadline_s
        last = None
        while True:
            self.judge.warm()
            now = self.footprint()
            if now == wanted or (wanted is None and now == last) or time.monotonic() > until:
                return now
            last = now
            time.sleep(0.02)

    def at_rest(self) -> Footprint:
        return self._settled(self.idle)


def _mounts() -> tuple[str, ...]:
    """Of the host, without those of the Docker daemon whose tests may run beside these."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return tuple(mount for mount in mounts if f"{daemon.CACHE}/" not in mount)


def _shared_memory(uid_base: int) -> tuple[str, ...]:
    """System V's, of the host, made by who is a user of a jail."""
    segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return tuple(segment for segment in segments if int(segment.split()[9]) >= uid_base)


def _status(entry: Path, owner: str) -> tuple[int, int, bool]:
    """PID, parent's PID, and whether the process is in a group of the owner's, which no program can leave."""
    try:
        parent = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        return int(entry.name), parent, owner in entry.joinpath("cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0, False


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != 0:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def bench(config: SandboxConfig) -> Iterator[Bench]:
    cores = os.sched_getaffinity(0)
    with (
        tempfile.TemporaryDirectory(prefix="hostile-scratch-") as scratch,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(tempfile, "tempdir", scratch)
        judge = Judge(config, slot=SLOT, core=max(cores))
        try:
            bench = Bench(judge, config, Path(scratch))
            yield bench
        finally:
            judge.close()
            os.sched_setaffinity(0, cores)
        after = bench.footprint()
        assert (after.jailed_processes, after.children, after.groups) == (0, bench.children_before, 0)


def described(runs: tuple[Run, ...], results: tuple[TestResult, ...] | None = None) -> list[tuple[object, ...]]:
    """Runs as they should have ended, or did: only what the row fixes."""
    rows: list[tuple[object, ...]] = []
    for index, run in enumerate(runs):
        ended = run if results is None else results[index]
        rows.append(
            (
                run.name or index,
                str(ended.verdict),
                None if run.exit_code is None else ended.exit_code,
                None if run.signal is None else ended.signal,
            )
        )
    return rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_verdicts_and_nothing_left(bench: Bench, case: Case) -> None:
    judgement = bench.grade(case)

    if case.compiles:
        assert judgement.compile is None or judgement.compile.ok, judgement.compile.message[-2000:]
        assert described(case.runs, judgement.tests) == described(case.runs), _last_words(judgement)
    else:
        assert judgement.compile is not None
        assert not judgement.compile.ok
        assert judgement.tests == ()
        assert len(judgement.compile.message) <= LONGEST_MESSAGE_BYTES
        assert "root:" not in judgement.compile.message
    for result in judgement.tests:
        if result.verdict is Verdict.TIME_LIMIT:
            assert result.cpu_s is not None
            assert result.cpu_s < case.limits.cpu_s + 1.0 * SLOWNESS
    assert bench.at_rest() == bench.idle


def _last_words(judgement: Judgement) -> str:
    return "\n".join(
        f"{result.name}: {result.verdict} {result.message} {result.stdout_tail[-200:]!r} {result.stderr_tail[-400:]!r}"
        for result in judgement.tests
    )


@pytest.mark.parametrize("name", ["fork_bomb", "sleep", "fork_sleepers", "daemon", "stop_self"])
def test_cancelled_in_the_middle_and_nothing_left(bench: Bench, name: str) -> None:
    limits = replace(ROOMY, cpu_s=60.0, wall_s=60.0)
    runs = (*words(Verdict.ACCEPTED, "daemon"), *words(Verdict.IDLE, name, "sleep"))
    case = Case("cancelled", "c", program("processes.c"), runs, limits)
    cancelled, cancel = os.pipe()
    started = time.monotonic()
    try:
        with pytest.raises(Cancelled):
            bench.grade(case, cancel_fd=cancelled, cancel_by=cancel)
    finally:
        os.close(cancelled)
        os.close(cancel)
    assert time.monotonic() - started < 20 * SLOWNESS
    assert bench.at_rest() == bench.idle


def test_one_input_serves_many_submissions(bench: Bench) -> None:
    """The same sealed memfd goes to programs that attack it and to one that only reads it, in another cell."""
    stdin = Stdin(b"true input\n")
    problem = Problem((Test(0, None, 0, stdin, b"true input\n"),), Tokens())
    verdicts = [
        bench.judge.judge(Submission(problem, language, source, ROOMY)).tests[0].verdict
        for language, source in (
            ("c", program("stdin_tricks.c")),
            ("c", program("stdin_tricks.c")),
            *((language, b"print(input())") for language in PYTHONS),
        )
    ]
    assert verdicts == [Verdict.ACCEPTED] * 4


def test_the_time_of_reading_is_no_note_to_the_next(bench: Bench) -> None:
    stdin = Stdin(b"true input\n")
    problem = Problem((Test(0, None, 0, stdin, b"0\n"),), Tokens())
    source = b"import os\nbefore = os.stat(0).st_atime_ns\nos.read(0, 100)\nprint(before)\n"
    for language in (*PYTHONS, *PYTHONS):
        (result,) = bench.judge.judge(Submission(problem, language, source, ROOMY)).tests
        assert result.verdict is Verdict.ACCEPTED, result.stdout_tail


def test_the_judge_did_not_grow(bench: Bench) -> None:
    """Last in this file: looks back on all that ran before."""
    assert _resident_bytes() < bench.resident_bytes + GROWTH_BYTES
