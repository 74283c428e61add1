"""A cell: one jail, made for one submission and never used again.

Theory of operation
-------------------
A cell is three things that live and end together: an nsjail process with the warden as process 1 of the jail, a pair
of host uids, and a pair of cgroups (one for the warden, one for the program). `Cell` starts them, hands the warden
one run after the other; `sandbox.watching` watches it from outside:

    judge (this process, root)                      jail
    ActiveRun ─ request + descriptors ──────────▶   warden forks; the child enters the cgroup, drops to its uid, runs
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
import itertools
import os
import socket
import subprocess
from collections.abc import Collection, Mapping, Sequence

from sandbox import nsjail
from sandbox.cgroups import CellGroup
from sandbox.errors import GraderFault
from sandbox.jail import wire
from sandbox.run import RunRecord, RunRequest
from sandbox.watching import ActiveRun, wait_for

#: How long a cell may take to come up, to empty its scratch disk, and to go once it may. Far beyond what any of them
#: needs (tens of milliseconds) even on a loaded host; past it the cell is given up.
START_S = 30.0
LEAVE_S = 5.0
SWEEP_S = 10.0

#: Process ids go on counting from run to run, and so tell the next one how many this one used. A cell that has given
#: out so many is not used again, which leaves less than a byte to tell.
MAX_PID = 256

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


class Cell:
    """One jail with its warden. Starts in the background; the first `load` or `run` waits until it is up."""

    def __init__(
        self,
        group: CellGroup,
        *,
        host_uid: int,
        mounts: Sequence[str] = (),
        scratch_bytes: int = SCRATCH_BYTES,
        scratch_inodes: int = nsjail.SCRATCH_INODES,
        cores: Collection[int] | None = None,
    ) -> None:
        """`host_uid` and the next are the warden's and the program's uids on the host. `scratch_bytes` and
        `scratch_inodes`: of each scratch disk. `cores`: those that all of it runs on; None for this process's own.
        Raises OSError.
        """
        self._group = group
        self._ready = False
        self._run: ActiveRun | None = None
        self._used_before_s = 0.0
        self._cores = len(cores or os.sched_getaffinity(0))
        self._ended = False
        self._log = os.memfd_create("nsjail-log", os.MFD_CLOEXEC)
        self._sock, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inner:
            command = nsjail.command(
                [*WARDEN_ARGV, WARDEN.format(fd=inner.fileno())],
                host_uid=host_uid,
                pass_fd=inner.fileno(),
                scratch_bytes=scratch_bytes,
                scratch_inodes=scratch_inodes,
                mounts=tuple(mounts),
            )
            try:
                nsjail.hold_mount_points()
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
        if cores is not None:
            # Before it has started anything, which then runs there too.
            os.sched_setaffinity(self._process.pid, cores)
        entries = group.warden_entries()
        self.send({"op": "hello", "program_uid": nsjail.PROGRAM_ID}, entries)
        for entry in entries:
            os.close(entry)

    @property
    def usable(self) -> bool:
        """Whether another run of the same submission can be trusted to this cell."""
        return self.sound and (self._run is None or self._run.pid < MAX_PID)

    @property
    def sound(self) -> bool:
        """The same, however many processes there were."""
        return not self._ended and self._swept()

    @property
    def used_s(self) -> float:
        """CPU seconds of all runs that have ended here."""
        return self._used_before_s + (0.0 if self._run is None else self._run.used_s)

    def load(self, files: Mapping[str, int], *, executable: bool) -> None:
        """Copy files (name to descriptor, read from its offset 0) to where the program can only read them.

        Raises GraderFault.
        """
        self._wait_ready()
        self._load(wire.PROGRAM_DIR, files, 0o555 if executable else 0o444)

    def _load(self, directory: str, files: Mapping[str, int], mode: int) -> None:
        # As many at once as descriptors go into a message.
        rest = iter(files.items())
        while some := list(itertools.islice(rest, wire.MOST_FILES)):
            message = {"op": "load", "into": directory, "files": [[name, mode] for name, _ in some]}
            self.send(message, [fd for _, fd in some])
            self._expect("ready", START_S)

    def become_session(self) -> None:
        """Have the warden serve a session (`sandbox.session`) from now on. Raises GraderFault."""
        self._wait_ready()
        self.send({"op": "session"})
        self._expect("ready", START_S)

    def start(self, request: RunRequest) -> ActiveRun:
        """Start the program; `sandbox.watching.wait_for` watches it. Raises GraderFault."""
        self._wait_ready()
        if not self._swept():
            raise GraderFault("the cell's scratch disk could not be emptied")
        self._load(wire.BOX, request.files, 0o644)
        self._used_before_s = self.used_s
        self._run = ActiveRun(request, self._group, self, self._cores)
        return self._run

    def run(self, request: RunRequest, cancel_fd: int | None = None) -> RunRecord:
        """Run the program once and wait for its end. Raises GraderFault; Cancelled once `cancel_fd` is readable."""
        return wait_for([self.start(request)], cancel_fd)[0]

    # -- the conversation with the warden

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, message: wire.Message, fds: Sequence[int] = ()) -> None:
        # A warden that is gone shows at the next receive, with its last words.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            wire.send(self._sock, wire.for_warden(message), fds)

    def receive(self, timeout_s: float | None = None) -> tuple[wire.Message, list[int]]:
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
        message, _ = self.receive(timeout_s)
        return bool(message.get(key))

    def _wait_ready(self) -> None:
        if not self._ready:
            self._ready = self._expect("ready", START_S)

    def _swept(self) -> bool:
        """Whether the last run's leavings are gone; waits for the warden to say so."""
        run = self._run
        if run is not None and run.sweeping and not self._ended:
            with contextlib.suppress(GraderFault):
                run.sweeping = not self._expect("swept", SWEEP_S)
            if run.sweeping:
                self.end()
        return run is None or not run.sweeping

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
            self._process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            self._group.kill()
            self._process.kill()
            self._process.wait()
        self._group.close()
        os.close(self._log)
