"""A cell: one jail, made for one submission and never used again.

Theory of operation
-------------------
A cell is three things that live and end together: an nsjail process with the warden as process 1 of the jail, a pair
of host uids, and a pair of cgroups (one for the warden, one for the program). `Cell` starts them, hands the warden
one run after the other, and is the only place that watches a run from outside:

    judge (this process, root)                      jail
    Cell.run ── request + descriptors ──────────▶   warden forks; the child enters the cgroup, drops to its uid, runs
      │  sleeps until the program can at the earliest
      │  have reached its CPU limit, then asks the
      │  cgroup; wall limit on the judge's clock
      ├──── kill, if a limit was reached ───────▶   kill(-1)
      ◀──── exit status ────────────────────────    all other processes killed and reaped
    reads CPU, peak memory, OOM kills from the cgroup, sizes of stdout and stderr from their memfds

Nothing the program or even the warden says decides a limit: the exit status alone comes from inside. A warden that
does not answer a kill in time is ended from outside with everything in its cell, and the run is judged by what the
kernel recorded. A warden that dies or breaks the protocol is a `GraderFault`.
"""

from __future__ import annotations

import contextlib
import enum
import mmap
import os
import resource
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sandbox import nsjail
from sandbox.cgroups import CellGroup, Usage
from sandbox.errors import Cancelled, GraderFault
from sandbox.jail import wire
from sandbox.problem import Limits
from sandbox.verdicts import Evidence

#: How long a cell may take to come up, to answer a kill, and to empty its scratch disk. Far beyond what any of them
#: needs (tens of milliseconds) even on a loaded host; past it the cell is given up.
START_S = 30.0
KILL_GRACE_S = 5.0
SWEEP_S = 10.0

#: How far, in wall limits, waiting for a core can put off the end of a run.
MAX_WAIT_FACTOR = 10

#: Outputs up to this size are read rather than mapped: cheaper.
MAPPED_BYTES = 64 * 1024

#: Room on the scratch disks: more than any memory limit, so that the cgroup, which counts files there, always decides.
SCRATCH_BYTES = 16 * 2**30

#: Imported, not run as a script, which would be compiled anew in every cell. In a forked child `serve` returns the
#: program: nothing of the warden is then below it but this one frame, and the interpreter ends as any other would.
WARDEN = """
import sys
sys.path[0] = "/rkgrade"
from warden import serve
program = serve({fd})
program and sys.exit(program())
"""
WARDEN_ARGV = ["/rkgrade-enter", "warden", "/usr/bin/python3", "-s", "-c"]


class Action(enum.StrEnum):
    """What the warden's child does once it is the program."""

    EXEC = "exec"
    CHECK = "check"
    """Compile the Python source in /prog; where that goes well, the warden becomes its zygote."""
    PYTHON = "python"
    """Run the zygote's code."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    action: Action
    stdin_fd: int
    limits: Limits
    argv: tuple[str, ...] = ()
    collect: tuple[str, ...] = ()
    """Names of files in /box to hand back, where the run leaves them as plain files."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one run came to, by the kernel's account. Close it to free the output."""

    evidence: Evidence
    cpu_s: float
    wall_s: float
    memory_bytes: int
    stdout: Output
    stderr: Output
    collected: dict[str, int]
    """Descriptors of the files asked for."""

    def close(self) -> None:
        self.stdout.close()
        self.stderr.close()
        for fd in self.collected.values():
            os.close(fd)


class Output:
    """What a run wrote to one stream: a memfd, bounded by the program's file size limit."""

    __slots__ = ("_fd",)

    def __init__(self, name: str) -> None:
        self._fd = os.memfd_create(name, os.MFD_CLOEXEC)

    @property
    def fd(self) -> int:
        return self._fd

    def __len__(self) -> int:
        return os.fstat(self._fd).st_size

    def head(self, size_bytes: int) -> bytes:
        return os.pread(self._fd, size_bytes, 0)

    def tail(self, size_bytes: int) -> bytes:
        length = len(self)
        return os.pread(self._fd, size_bytes, max(0, length - size_bytes))

    @contextlib.contextmanager
    def view(self) -> Iterator[memoryview]:
        """The whole output; a large one is mapped rather than copied."""
        length = len(self)
        if length <= MAPPED_BYTES:
            yield memoryview(os.pread(self._fd, length, 0))
            return
        with mmap.mmap(self._fd, 0, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as view:
            yield view

    def close(self) -> None:
        os.close(self._fd)


class Cell:
    """One jail with its warden. Starts in the background; the first `load` or `run` waits until it is up."""

    def __init__(self, group: CellGroup, *, host_uid: int, mounts: Sequence[str] = ()) -> None:
        """`host_uid` and the next are the warden's and the program's uids on the host. Raises OSError."""
        self._group = group
        self._cores = len(os.sched_getaffinity(0))
        self._ready = False
        self._sweeping = False
        self._ended = False
        self._log = os.memfd_create("nsjail-log", os.MFD_CLOEXEC)
        self._sock, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inner:
            command = nsjail.command(
                [*WARDEN_ARGV, WARDEN.format(fd=inner.fileno())],
                host_uid=host_uid,
                pass_fd=inner.fileno(),
                scratch_bytes=SCRATCH_BYTES,
                mounts=tuple(mounts),
            )
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    pass_fds=(inner.fileno(),),
                    env={},
                )
            except OSError:
                self._sock.close()
                os.close(self._log)
                raise
        entries = group.warden_entries()
        self._send({"op": "hello", "program_uid": nsjail.PROGRAM_ID}, entries)
        for entry in entries:
            os.close(entry)

    @property
    def usable(self) -> bool:
        """Whether another run of the same submission can be trusted to this cell."""
        return not self._ended and self._swept()

    def load(self, files: dict[str, int], *, executable: bool) -> None:
        """Copy files (name to descriptor, read from its offset 0) to where the program can only read them.

        Raises GraderFault.
        """
        self._wait_ready()
        mode = 0o555 if executable else 0o444
        self._send({"op": "load", "files": [[name, mode] for name in files]}, list(files.values()))
        self._expect("ready", START_S)

    def run(self, request: RunRequest, cancel_fd: int | None = None) -> RunRecord:
        """Run the program once and wait for its end. Raises GraderFault; Cancelled once `cancel_fd` is readable."""
        self._wait_ready()
        if not self._swept():
            raise GraderFault("the cell's scratch disk could not be emptied")
        limits = request.limits
        headroom = 2 * (limits.output_bytes + 1)
        entries = self._group.begin(limits.memory_bytes + headroom, limits.processes)
        stdout, stderr = Output("stdout"), Output("stderr")
        try:
            message = {
                "op": "run",
                "action": request.action.value,
                "argv": request.argv,
                "rlimits": _rlimits(limits, counted=bool(entries)),
                "collect": request.collect,
            }
            self._send(message, [request.stdin_fd, stdout.fd, stderr.fd, *entries])
            started = time.monotonic()
            over_wall, answer = self._watch(limits, started, cancel_fd)
            wall_s = time.monotonic() - started
            return self._record(limits, answer, over_wall, wall_s, stdout, stderr)
        except BaseException:
            stdout.close()
            stderr.close()
            raise

    def _watch(
        self, limits: Limits, started: float, cancel_fd: int | None
    ) -> tuple[bool, tuple[wire.Message, list[int]] | None]:
        """Wait for the warden's answer, ending the run at its limits. No answer where the cell had to be ended."""
        poller = select.poll()
        poller.register(self._sock, select.POLLIN)
        if cancel_fd is not None:
            poller.register(cancel_fd, select.POLLIN)
        over_wall = False
        waited_s = 0.0
        killed_at: float | None = None
        while True:
            now = time.monotonic()
            if killed_at is None:
                wall_left = limits.effective_wall_s + waited_s - (now - started)
                if wall_left <= 0 and (waited := self._group.waited_s()) > waited_s:
                    # It waited for its core as others' work ran there: that is no idling.
                    waited_s = min(waited, MAX_WAIT_FACTOR * limits.effective_wall_s)
                    continue
                cpu_used = self._group.cpu_s()
                cpu_left = wall_left if cpu_used is None else (limits.cpu_s - cpu_used) / self._cores
                if wall_left <= 0 or cpu_left < 0:
                    over_wall = wall_left <= 0
                    killed_at = now
                    self._send({"op": "kill"})
                    continue
                timeout_s = min(wall_left, cpu_left)
            else:
                timeout_s = killed_at + KILL_GRACE_S - now
                if timeout_s <= 0:
                    self.end()
                    return over_wall, None
            # Rounded up: a poll that returns a moment early would spin until the limit is really reached.
            ready = {fd for fd, _ in poller.poll(int(timeout_s * 1000) + 1)}
            if cancel_fd in ready:
                self.end()
                raise Cancelled
            if ready:
                return over_wall, self._receive()

    def _record(
        self,
        limits: Limits,
        answer: tuple[wire.Message, list[int]] | None,
        over_wall: bool,
        wall_s: float,
        stdout: Output,
        stderr: Output,
    ) -> RunRecord:
        usage = self._group.end()
        if answer is None:
            status, said_cpu_s, collected = signal.SIGKILL.value, 0.0, {}
        else:
            message, fds = answer
            try:
                status, said_cpu_s = int(message["status"]), float(message["cpu_s"])
                wall_s = min(wall_s, float(message["wall_s"]))
                collected = dict(zip(message["collected"], fds, strict=True))
                self._sweeping = bool(message["sweeping"])
            except (KeyError, TypeError, ValueError) as error:
                raise GraderFault(f"the warden broke the protocol: {error!r}") from error
        written = len(stdout) + len(stderr)
        exit_code = os.waitstatus_to_exitcode(status)
        died_of = -exit_code if exit_code < 0 else None
        over_output = max(len(stdout), len(stderr)) > limits.output_bytes or died_of == signal.SIGXFSZ
        usage = usage or Usage(cpu_s=said_cpu_s, peak_bytes=0, file_cache_bytes=0, oom_kills=0)
        # Pages of the outputs are charged to the program, which never asked for them; see `headroom` above.
        memory_bytes = max(0, usage.peak_bytes - written - usage.file_cache_bytes)
        evidence = Evidence(
            over_memory=usage.oom_kills > 0 or memory_bytes > limits.memory_bytes,
            over_cpu=usage.cpu_s > limits.cpu_s,
            over_wall=over_wall,
            over_output=over_output,
            exit_code=None if died_of else exit_code,
            signal=died_of,
        )
        return RunRecord(evidence, usage.cpu_s, wall_s, memory_bytes, stdout, stderr, collected)

    # -- the conversation with the warden

    def _send(self, message: wire.Message, fds: Sequence[int] = ()) -> None:
        # A warden that is gone shows at the next receive, with its last words.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            wire.send(self._sock, wire.for_warden(message), fds)

    def _receive(self, timeout_s: float | None = None) -> tuple[wire.Message, list[int]]:
        """The warden's next message. Raises GraderFault, which ends the cell: nothing more can be asked of it."""
        try:
            return self._answer(timeout_s)
        except GraderFault:
            self.end()
            raise

    def _answer(self, timeout_s: float | None) -> tuple[wire.Message, list[int]]:
        self._sock.settimeout(timeout_s)
        try:
            received = wire.receive(self._sock, wire.from_warden)
        except TimeoutError as error:
            raise GraderFault(f"the warden did not answer within {timeout_s} s{self._last_words()}") from error
        except ValueError as error:
            raise GraderFault(f"the warden broke the protocol: {error}") from error
        except ConnectionResetError:
            # Gone before it read all that it was sent.
            received = None
        finally:
            self._sock.settimeout(None)
        if received is None:
            raise GraderFault(f"the warden is gone{self._last_words()}")
        if "fault" in received[0]:
            raise GraderFault(f"warden: {received[0]['fault']}")
        return received

    def _expect(self, key: str, timeout_s: float) -> bool:
        message, _ = self._receive(timeout_s)
        return bool(message.get(key))

    def _wait_ready(self) -> None:
        if not self._ready:
            self._ready = self._expect("ready", START_S)

    def _swept(self) -> bool:
        if self._sweeping and not self._ended:
            with contextlib.suppress(GraderFault):
                self._sweeping = not self._expect("swept", SWEEP_S)
            if self._sweeping:
                self.end()
        return not self._sweeping

    def _last_words(self) -> str:
        log = os.pread(self._log, 4096, 0).decode(errors="replace").strip()
        return f": {log}" if log else ""

    # -- the end

    def end(self) -> None:
        """End every process of the cell now. The cell is then of no more use; `close` it."""
        if not self._ended:
            self._ended = True
            self._group.kill()
            # Not SIGKILL: nsjail is the one to reap the warden, which would else be left to whoever is process 1.
            self._process.terminate()

    def leave(self) -> None:
        """Let the warden go, without waiting: it leaves when the socket closes, and its jail with it."""
        self._ended = True
        self._sock.close()

    def gone(self) -> bool:
        """Whether every process of the cell has ended."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End the cell and wait until nothing of it is left."""
        self._sock.close()
        try:
            self._process.wait(KILL_GRACE_S)
        except subprocess.TimeoutExpired:
            self._group.kill()
            self._process.kill()
            self._process.wait()
        self._group.close()
        os.close(self._log)


def _rlimits(limits: Limits, *, counted: bool) -> list[tuple[int, int]]:
    """Resource limits of the program itself: second lines of defence behind the cgroup, but for file size and stack.

    RLIMIT_FSIZE is one byte beyond the output limit, so that output of exactly the limit passes.
    """
    rlimits = [
        (resource.RLIMIT_FSIZE, limits.output_bytes + 1),
        (resource.RLIMIT_STACK, min(limits.memory_bytes, nsjail.STACK_BYTES)),
        # Far off: it counts by samples, and on a loaded host was seen to fire at two thirds of its value.
        (resource.RLIMIT_CPU, 2 * int(limits.cpu_s) + 5),
        # Not 0: a core handler behind a pipe is spared only by a limit of 1, in which no plain core file fits either.
        (resource.RLIMIT_CORE, 0 if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 else 1),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_MEMLOCK, 64 * 1024),
    ]
    if not counted:
        rlimits += [
            (resource.RLIMIT_AS, limits.memory_bytes + 64 * 2**20),
            (resource.RLIMIT_NPROC, limits.processes),
        ]
    return rlimits
