"""The trivial program, A+B, in Python and in C++, and the ways to run it once per test: bare, and through a judge.

"Bare" is what a script without any sandbox would do: start the program with its stdin and stdout on files, wait for
it, no more. Nobody looks at what it printed. The judge does all it does for a submission, comparing output included.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Cost, CpuAccount, Mark, pinned

from sandbox import host, languages
from sandbox.checkers import Tokens
from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.nsjail import ENVIRONMENT
from sandbox.problem import Judgement, Problem, Submission, Test, TestResult
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict

#: Apart from the slots of any server that runs here at the same time: slots decide the uids of cells.
SLOT = 40

SOURCES = {"python": languages.PYTHON_SUM, "cpp": languages.CPP_SUM}

#: fork and exec in a process that holds nothing else: a fork copies page tables, and Python's are large.
FORK_EXEC_SOURCE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* fork_exec COUNT INPUT OUTPUT PROGRAM: runs PROGRAM < INPUT > OUTPUT that often; prints nanoseconds of wall time. */
int main(int argc, char **argv) {
    if (argc != 5) return 2;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int left = atoi(argv[1]); left > 0; left--) {
        pid_t pid = fork();
        if (pid == 0) {
            if (dup2(open(argv[2], O_RDONLY), 0) != 0) _exit(126);
            if (dup2(open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0644), 1) != 1) _exit(126);
            execl(argv[4], argv[4], (char *)NULL);
            _exit(127);
        }
        int status;
        if (waitpid(pid, &status, 0) != pid || status != 0) return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%lld\n", (to.tv_sec - from.tv_sec) * 1000000000LL + (to.tv_nsec - from.tv_nsec));
}
"""


def problem(tests: int) -> Problem:
    return Problem(
        tuple(
            Test(index, None, len(text := b"%d %d\n" % (index, index + 1)), Stdin(text), b"%d\n" % (2 * index + 1))
            for index in range(tests)
        ),
        Tokens(),
    )


class NotAccepted(Exception):
    """The trivial program failed: nothing measured would mean anything."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What one submission cost."""

    tests: int
    call_ms: float
    """Wall time of the whole call of the judge."""
    prepare_ms: float
    """Up to the first test: a cell opened and the source compiled or checked (C++: found in the cache)."""
    first_result_ms: float
    """Up to the first test's result."""
    next_tests: Cost
    """Of the tests after the first, each."""


def judge_once(judge: Judge, account: CpuAccount, language: str, of: Problem) -> Judged:
    """Raises NotAccepted."""
    marks: list[Mark] = []
    tests = len(of.tests)

    def on_test(result: TestResult) -> None:
        if result.verdict is not Verdict.ACCEPTED:
            raise NotAccepted(f"{language}: {result.verdict} {result.message}")
        # Only at the ends: reading the account costs a noticeable part of a trivial test.
        if result.index in (0, tests - 1):
            marks.append(account.mark())

    begun = account.mark()
    judgement: Judgement = judge.judge(Submission(of, language, SOURCES[language].encode()), on_test=on_test)
    call_ms = account.mark().since(begun).wall_ms
    return Judged(
        tests,
        call_ms,
        judgement.compile_s * 1e3,
        marks[0].since(begun).wall_ms,
        marks[-1].since(marks[0]).per(max(1, tests - 1)),
    )


@dataclass(frozen=True)
class Bench:
    """A place with the programs, their input, and a sandbox of its own, all on one core."""

    account: CpuAccount
    directory: Path
    config: SandboxConfig

    @property
    def program(self) -> Path:
        return self.directory / "main"

    @property
    def source(self) -> Path:
        return self.directory / "main.py"

    def judge(self) -> Judge:
        return Judge(self.config, SLOT, None)

    def spawn(self, argv: list[str], count: int) -> Cost:
        """`argv < input > output` that often, started by posix_spawn from this process. Cost of one."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, str(self.directory / "input"), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.directory / "output"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        ]
        environment = {**ENVIRONMENT, "HOME": str(self.directory), "TMPDIR": str(self.directory)}

        def loop() -> None:
            for _ in range(count):
                pid = os.posix_spawn(argv[0], argv, environment, file_actions=actions)
                if os.waitpid(pid, 0)[1] != 0:
                    raise NotAccepted(f"{argv[0]} failed")

        cost = self.account.cost(loop).per(count)
        if (self.directory / "output").read_text().strip() != "3":
            raise NotAccepted(f"{argv[0]} printed something else")
        return cost

    def bare_python(self, count: int) -> Cost:
        return self.spawn([languages.PYTHON, str(self.source)], count)

    def bare_cpp(self, count: int) -> Cost:
        return self.spawn([str(self.program)], count)

    def fork_exec_cpp(self, count: int) -> Cost:
        """The same by fork and exec, from a small C program; its own start is in the CPU time, not in the wall."""
        driver, *files = (str(self.directory / name) for name in ("fork_exec", "input", "output", "main"))
        before = self.account.mark()
        done = subprocess.run([driver, str(count), *files], capture_output=True, text=True, check=True)
        return Cost(int(done.stdout) / 1e6, self.account.mark().since(before).cpu_ms).per(count)

    def whole(self, language: str, of: Problem, submissions: int) -> Cost:
        """Of one test where the submission's whole judging is shared out: its cell's start and end are in it.

        The CPU time is complete, cells that end in the background included; their wall time is nobody's wait.
        """
        judge = self.judge()
        begun = self.account.mark()
        try:
            wall_ms = sum(judge_once(judge, self.account, language, of).call_ms for _ in range(submissions))
        finally:
            judge.close()
        return Cost(wall_ms, self.account.mark().since(begun).cpu_ms).per(submissions * len(of.tests))

    def next_test(self, language: str, of: Problem) -> Cost:
        """Of one test in a cell that is up."""
        with contextlib.closing(self.judge()) as judge:
            return judge_once(judge, self.account, language, of).next_tests


@contextlib.contextmanager
def bench(directory: Path) -> Iterator[Bench]:
    """Prepare everything in `directory`: the sandbox's headers, the programs, and a warm compile cache."""
    # The jails' users must get in.
    directory.chmod(0o755)
    config = SandboxConfig(data_dir=directory / "data")
    with CpuAccount() as account, pinned(max(os.sched_getaffinity(0))):
        host.prepare(config)
        (directory / "main.py").write_text(SOURCES["python"])
        (directory / "main.cpp").write_text(SOURCES["cpp"])
        (directory / "fork_exec.c").write_text(FORK_EXEC_SOURCE)
        (directory / "input").write_text("1 2\n")
        _build([*languages.REGISTRY["cpp"].header, "-o", "main", "main.cpp"], directory)
        _build(["/usr/bin/gcc", "-O2", "-static", "-o", "fork_exec", "fork_exec.c"], directory)
        ready = Bench(account, directory, config)
        one = problem(1)
        with contextlib.closing(ready.judge()) as judge:
            for language in SOURCES:
                judge_once(judge, account, language, one)
        yield ready


def _build(command: Sequence[str], directory: Path) -> None:
    subprocess.run(command, cwd=directory, check=True)
