"""The warden: the only process of ours inside a cell. It starts the program once per test.

Theory of operation
-------------------
nsjail starts an interpreter that imports this module as process 1 of the cell's own PID namespace, with uid 0 of a user
namespace in which it holds three capabilities: CAP_SETUID and CAP_SETGID to become the program, CAP_KILL to end it. The
judge, outside, holds the other end of one socket (`wire`) and sends a request per test, with the descriptors the
program shall have as stdin, stdout and stderr, and descriptors of the `cgroup.procs` (v1: `tasks`) files that lead into
the program's cgroup. For each request the warden starts a child; the child enters the cgroup, sets its limits, takes
the program's uid (thereby losing every capability) and only then becomes the program: through `enter`, which execs it,
or, where the submission is Python (`zygote`), by running code compiled beforehand in the interpreter that a fork
copied.

The program cannot harm the warden: it has another uid, no capability, and process 1 takes no signal from inside its
namespace. It can learn nothing from it: the warden never holds an expected output or another test's input, and all
its descriptors are closed in the child. What the warden reports is used for the exit status only; CPU time, memory
and wall time are read by the judge outside.

A test is over when the program's first process ends. What it left running is killed (one kill(-1): nothing can fork
its way out, since process 1 sees them all), reaped, and what it left on the scratch disk is removed by a child with
the program's own uid, which alone can enter directories closed to others.

When the judge is gone the socket says so; process 1 then exits and the kernel ends the whole namespace.

Runs with the jail's own interpreter: standard library only, of that the leanest (see `wire`), and no module of the
grader but its neighbours.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import time
from _socket import socket

TYPE_CHECKING = False  # As in `typing`, whose import would cost every cell more than all of ours together.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from signal import SIGKILL, SIGPIPE, SIGXFSZ
    from typing import TypeVar

    from sandbox.jail import disk, wire, zygote

    #: What a forked child is to run in this interpreter; gives the exit status.
    Program = Callable[[], int]
    T = TypeVar("T")
else:
    from _signal import SIGKILL, SIGPIPE, SIGXFSZ

    import disk
    import wire
    import zygote

ENTER = "/rkgrade-enter"

#: In place of a failure to start the program: its source does not compile.
NOT_COMPILED = b"not compiled"

#: Kept open on nothing, so that every descriptor received lies beyond those that a program is given (0 to 2), the one
#: that reports failure (3), further ones of the program's, and the cgroup entries: spawning can then place them all
#: without stepping on one another.
RESERVED_FDS = 32


class Warden:
    """Serves one judge until it hangs up."""

    def __init__(self, sock: socket) -> None:
        self.sock = sock
        self.program_id = 0
        self.zygote: zygote.Zygote | None = None

    def serve(self) -> Program | None:
        """Answer requests. Returns None when the judge is gone, or, in a forked child, the program to run."""
        while True:
            received = wire.receive(self.sock, wire.from_judge)
            if received is None:
                return None
            message, fds = received
            op = message["op"]
            if op == "run":
                program = self.run(message, fds)
                if program is not None:
                    return program
            elif op == "load":
                self.load(message["into"], message["files"], fds)
                self.answer({"ready": True})
            elif op == "hello":
                self.program_id = message["program_uid"]
                enter_groups(fds)
                close_all(fds)
                self.answer({"ready": True})
            elif op == "session":
                __import__("session").Session(self).serve()
                return None
            # A kill that crossed the end of its run is stale: nothing is left to kill.

    def answer(self, message: wire.Message, fds: Sequence[int] = ()) -> None:
        wire.send(self.sock, wire.for_judge(message), fds)

    def run(self, request: wire.Message, fds: list[int]) -> Program | None:
        """Run the program once. In the forked child of a zygote, returns the code to run; None otherwise."""
        failure_fd, failed_fd = os.pipe()
        started = time.monotonic()
        if request["action"] == "exec":
            pid = self.spawn(request, fds, failed_fd)
        else:
            pid = os.fork()
            if pid == 0:
                return self.become_program(request, fds, failed_fd)
        os.close(failed_fd)
        stderr_fd = fds.pop(2)
        close_all(fds)
        status, usage = self.wait(pid)
        ended_at = time.monotonic()
        failure = os.read(failure_fd, 4096)
        os.close(failure_fd)
        compiled = failure != NOT_COMPILED
        if failure and compiled:
            os.close(stderr_fd)
            self.answer({"fault": f"could not start the program: {failure.decode(errors='replace')}"})
            return None
        end_everything()
        found, files = self.hand_over(request)
        if request["action"] == "check" and status == 0:
            status = self.become_zygote(request["argv"], stderr_fd)
        os.close(stderr_fd)
        clean = disk.scratch_is_empty()
        reply = {
            "status": status,
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "wall_s": ended_at - started,
            "ended_at": ended_at,
            "sweeping": not clean,
            "pid": pid,
            "compiled": compiled,
            **found,
        }
        self.answer(reply, files)
        close_all(files)
        if not clean:
            self.answer({"swept": self.sweep()})
        return None

    def become_zygote(self, argv: list[str], stderr_fd: int) -> int:
        """Compile the checked source here too; the status of the check.

        A source at the very edge of what the compiler takes may be taken there and not here, some frames deeper in the
        stack: that is still the source's doing.
        """
        try:
            self.zygote = zygote.Zygote(call=argv)
            return 0
        except Exception as error:
            os.write(stderr_fd, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
            return 1 << 8

    def wait(self, pid: int) -> tuple[int, resource.struct_rusage]:
        """Wait for the program's first process; end everything when the judge says so or is gone."""
        pidfd = os.pidfd_open(pid)
        try:
            poller = select.poll()
            poller.register(pidfd, select.POLLIN)
            poller.register(self.sock, select.POLLIN)
            while True:
                ready = [fd for fd, _ in poller.poll()]
                if pidfd in ready:
                    break
                # Only a kill, or the end of the judge, can come in the middle of a run.
                if wire.receive(self.sock, wire.from_judge) is None:
                    os._exit(0)
                kill_everything()
        finally:
            os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        return status, usage

    def spawn(self, request: wire.Message, fds: list[int], failed_fd: int) -> int:
        """Start a program of its own through `enter`, which does in C what `become_program` does."""
        limits = ",".join(f"{number}:{value}" for number, value in request["rlimits"])
        extras = request["extras"]
        counts = [str(extras), str(len(fds) - 3 - extras)]
        before = [str(self.program_id), *counts, str(request.get("nice", 0)), limits, wire.BOX]
        argv = [ENTER, *before, ",".join(request["prepare"]), *request["argv"]]
        # Sources are all beyond the targets: see RESERVED_FDS.
        targets = [*fds[:3], failed_fd, *fds[3:]]
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(targets)]
        # The interpreter ignores these two; a program is not to inherit that.
        defaults = (SIGPIPE, SIGXFSZ)
        return os.posix_spawn(ENTER, argv, os.environ, file_actions=actions, setsid=True, setsigdef=defaults)

    def become_program(self, request: wire.Message, fds: list[int], failed_fd: int) -> Program:
        """In a fork of the zygote: give up everything that is the warden's; returns the code to run."""
        try:
            extras = 3 + request["extras"]
            enter_groups(fds[extras:])
            os.setsid()
            for target, descriptor in enumerate([*fds[:3], failed_fd, *fds[3:extras]]):
                os.dup2(descriptor, target)
            os.closerange(extras + 1, 1 << 20)
            for number, value in request["rlimits"]:
                resource.setrlimit(number, (value, value))
            try:
                os.setpriority(os.PRIO_PROCESS, 0, 0)
            except PermissionError:
                # The grader itself yields to others, and this host lets nobody take that back.
                pass
            os.chdir(wire.BOX)
            os.setresgid(self.program_id, self.program_id, self.program_id)
            # From uid 0 to another: the kernel empties the permitted, effective and ambient sets.
            os.setresuid(self.program_id, self.program_id, self.program_id)
            prepare(request["prepare"])
            program = zygote.check
            if request["action"] == "once":
                self.zygote = once()
            if request["action"] != "check":
                assert self.zygote is not None
                self.zygote.take_arguments(request["argv"][1:])
                program = self.zygote.run
            os.close(3)
            return program
        except BaseException as error:
            os.write(3, repr(error).encode())
            os._exit(1)

    def load(self, directory: str, files: list[tuple[str, int]], fds: list[int]) -> None:
        """Write files where the program can read but not change them, or, in its own directory, as its own."""
        if directory == wire.BOX:
            self.as_program(lambda: disk.load(directory, files, fds))
        else:
            disk.load(directory, files, fds)
        close_all(fds)

    def as_program(self, work: Callable[[], T]) -> T:
        """Do something with the program's rights, now that none of its processes is alive: it may have closed its files
        to all others, and must not be handed what it could not have read itself.
        """
        os.setegid(self.program_id)
        os.seteuid(self.program_id)
        try:
            return work()
        finally:
            # Raises the capabilities again: see capabilities(7) on changes of the effective uid.
            os.seteuid(0)
            os.setegid(0)

    def hand_over(self, request: wire.Message) -> tuple[wire.Message, list[int]]:
        """What the run has left of what was asked for, to be told beside its end; and the files."""
        names: list[str] = []
        fds: list[int] = []
        said: wire.Message = {"collected": names}
        if request["collect"]:
            collected, fds = self.as_program(lambda: disk.opened(request["collect"]))
            names += collected
        if request["gather"]:
            said["gathered"], gathered, said["left_out"] = self.as_program(
                lambda: disk.left(wire.MOST_FILES - len(fds))
            )
            fds += gathered
        return said, fds

    def sweep(self) -> bool:
        """Empty the scratch disk with the program's own uid. False where something could not be removed."""
        pid = os.fork()
        if pid == 0:
            try:
                os.setresgid(self.program_id, self.program_id, self.program_id)
                os.setresuid(self.program_id, self.program_id, self.program_id)
                for directory in disk.SCRATCH:
                    disk.empty(directory)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        return disk.scratch_is_empty()


def enter_groups(entries: list[int]) -> None:
    """Enter the cgroups whose open files these are. "0" is the writer; the kernel checks the opener's rights."""
    for entry in entries:
        os.write(entry, b"0")


def once() -> zygote.Zygote:
    """Make the program's own process, which is to run the source once, ready for that; ends it where that does not
    compile.
    """
    code = zygote.compiled()
    if code is None:
        sys.stderr.flush()
        os.write(3, NOT_COMPILED)
        os._exit(1)
    return zygote.Zygote(code=code)


def prepare(items: list[str]) -> None:
    """Make what the program is to find in its directory: "name/" a directory, "name=N" a link to descriptor N."""
    for item in items:
        name, _, descriptor = item.partition("=")
        if descriptor:
            os.symlink(f"/proc/self/fd/{descriptor}", name)
        else:
            os.mkdir(name)


def close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def kill_everything() -> None:
    """kill(-1) walks all processes but this one under the kernel's process lock: none can fork its way out."""
    try:
        os.kill(-1, SIGKILL)
    except ProcessLookupError:
        pass


def end_everything() -> None:
    """Kill and reap whatever is left."""
    kill_everything()
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def reserve_fds() -> None:
    while (fd := os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)) < RESERVED_FDS:
        pass
    os.close(fd)


def serve(fd: int) -> Program | None:
    """Serve the judge at the other end of a socket; see `Warden.serve`."""
    reserve_fds()
    return Warden(socket(fileno=fd)).serve()
