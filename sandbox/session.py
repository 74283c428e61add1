"""A session: a cell that is a workspace, in which commands run one beside another until it is closed.

Theory of operation
-------------------
The cell is one of its own, never one that grades, with a disk of a size, control groups for the whole of it, and the
warden in another mode (`sandbox.jail.session`). Nothing here waits for a command: whoever owns the session asks for
something, polls `fileno`, and takes what has come. A warden that dies, or takes no more messages, is a `GraderFault`,
and the session is over.

Its programs yield to those that are graded: they are nicer by `NICENESS`, and run on the cores that they are given. The
wall and CPU limits that there are, are its owner's to watch.
"""

from __future__ import annotations

import itertools
import os
import select
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sandbox.cell import Cell
from sandbox.cgroups import CellGroup, Usage
from sandbox.errors import GraderFault
from sandbox.problem import Limits
from sandbox.terminal import Terminal
from sandbox.watching import rlimits

#: Beside graded programs, which are at 0, a session's get about a tenth of a core.
NICENESS = 10

#: How long a warden may take to answer once it is heard of, or what a control group may take to be made ready.
ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class SessionLimits:
    memory_bytes: int = 2**30
    """Of all processes and files together."""
    disk_bytes: int = 256 * 2**20
    """Of each of the two disks, `/box` and `/tmp`; also the most that one file, or one output, can hold."""
    inodes: int = 8192
    """Files and folders on each of them."""
    processes: int = 128


@dataclass(frozen=True, slots=True)
class Ended:
    """A command's first process has ended."""

    number: int
    exit_code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True)
class Done:
    """A file was written, or listed, or is open to be read."""

    number: int
    fd: int | None = None
    """Of the file; whoever takes this closes it."""
    more: bool = False
    """Whether a list was cut."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A file could not be had."""

    number: int
    why: str
    """The name of the kernel's error, such as "ENOENT"."""


Answer = Ended | Done | Refused


class Session:
    """`close` it."""

    def __init__(
        self,
        group: CellGroup,
        *,
        host_uid: int,
        mounts: Sequence[str],
        limits: SessionLimits,
        cores: Collection[int] | None = None,
    ) -> None:
        """Start it, and wait until it is up; takes over the group. Raises GraderFault and OSError."""
        self._group = group
        self._limits = limits
        self._program_uid = host_uid + 1
        self._numbers = itertools.count()
        self._cell: Cell | None = None
        try:
            self._entries = group.begin(limits.memory_bytes, limits.processes)
            self._cell = Cell(
                group,
                host_uid=host_uid,
                mounts=mounts,
                scratch_bytes=limits.disk_bytes,
                scratch_inodes=limits.inodes,
                cores=cores,
            )
            self._cell.become_session()
        except BaseException:
            self.close()
            raise

    def start(self, argv: Sequence[str], stdin_fd: int, stdout_fd: int, stderr_fd: int) -> int:
        """Start a command; its number, under which its end is told. Raises GraderFault."""
        limits = Limits(
            cpu_s=float(2**20),
            memory_bytes=self._limits.memory_bytes,
            output_bytes=self._limits.disk_bytes,
            processes=self._limits.processes,
        )
        message = {
            "argv": list(argv),
            "rlimits": rlimits(limits, counted=bool(self._entries), address_space=True),
            "extras": 0,
            "prepare": [],
            "nice": NICENESS,
        }
        return self._ask("exec", message, [stdin_fd, stdout_fd, stderr_fd, *self._entries])

    def start_on_terminal(self, argv: Sequence[str], rows: int, columns: int) -> tuple[int, Terminal]:
        """Start a command whose controlling terminal is a new one; its number, and the terminal, to be closed. Raises
        GraderFault, and OSError where there is no terminal to be had.
        """
        terminal = Terminal(rows, columns, uid=self._program_uid)
        slave = terminal.take_slave()
        try:
            return self.start(argv, slave, slave, slave), terminal
        except BaseException:
            terminal.close()
            raise
        finally:
            os.close(slave)

    def kill(self, number: int) -> None:
        """End a command, and what it has started in its own process group. Raises GraderFault."""
        self._send({"op": "kill", "number": number}, [])

    def write(self, path: str, source_fd: int) -> int:
        """Have a file hold what the descriptor does. Raises GraderFault."""
        return self._ask("write", {"path": path}, [source_fd])

    def read(self, path: str) -> int:
        """Have a file opened. Raises GraderFault."""
        return self._ask("read", {"path": path}, [])

    def list(self, path: str, target_fd: int) -> int:
        """Have a folder listed into the descriptor's file; an empty path is the workspace. Raises GraderFault."""
        return self._ask("list", {"path": path}, [target_fd])

    @property
    def usage(self) -> Usage | None:
        """The kernel's account of all that has run in it; None where nobody counts."""
        return self._group.usage()

    def fileno(self) -> int:
        """Readable once there is something to `take`."""
        assert self._cell is not None
        return self._cell.fileno()

    def take(self) -> Answer:
        """What has come. Raises GraderFault where the session is over."""
        assert self._cell is not None
        message, fds = self._cell.receive(ANSWER_S)
        try:
            if "ended" in message:
                code = os.waitstatus_to_exitcode(int(message["status"]))
                return Ended(int(message["ended"]), code if code >= 0 else None, -code if code < 0 else None)
            if "refused" in message:
                return Refused(int(message["refused"]), str(message["why"]))
            answer = Done(int(message["done"]), fds.pop() if fds else None, bool(message.get("more")))
        except (KeyError, TypeError, ValueError) as error:
            raise GraderFault(f"the warden broke the protocol: {error!r}") from error
        finally:
            for fd in fds:
                os.close(fd)
        return answer

    def _ask(self, op: str, message: dict[str, object], fds: Sequence[int]) -> int:
        number = next(self._numbers)
        self._send({"op": op, "number": number, **message}, fds)
        return number

    def _send(self, message: dict[str, object], fds: Sequence[int]) -> None:
        assert self._cell is not None
        # Its owner waits for nobody: a warden that reads nothing any more is of no use.
        poller = select.poll()
        poller.register(self._cell, select.POLLOUT)
        if not poller.poll(0):
            raise GraderFault("the session's warden takes no more messages")
        self._cell.send(message, fds)

    def close(self) -> None:
        """End everything in it and leave nothing behind. Blocks, for as long as that takes."""
        if self._cell is None:
            self._group.close()
            return
        self._cell.end()
        self._cell.close()
