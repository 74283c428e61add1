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
import stat
import time
from _socket import socket

TYPE_CHECKING = False  # As in `typing`, whose import would cost every cell more than all of ours together.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from signal import SIGKILL, SIGPIPE, SIGXFSZ

    from sandbox.jail import wire, zygote

    #: What a forked child is to run in this interpreter; gives the exit status.
    Program = Callable[[], int]
else:
    from _signal import SIGKILL, SIGPIPE, SIGXFSZ

    import wire
    import zygote

BOX = "/box"
PROGRAM_DIR = "/prog"
SCRATCH = (BOX, "/tmp")
ENTER = "/rkgrade-enter"
COPY_BYTES = 1 << 20

#: Fewer than fit into one message, descriptors and names alike.
MOST_COLLECTED = 48

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
                load(message["files"], fds)
                self.answer({"ready": True})
            elif op == "hello":
                self.program_id = message["program_uid"]
                enter_groups(fds)
                close_all(fds)
                self.answer({"ready": True})
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
        if failure:
            os.close(stderr_fd)
            self.answer({"fault": f"could not start the program: {failure.decode(errors='replace')}"})
            return None
        end_everything()
        names, collected = self.collect(request["collect"])
        if request["action"] == "check" and status == 0:
            status = self.become_zygote(request["argv"], stderr_fd)
        os.close(stderr_fd)
        clean = scratch_is_empty()
        reply = {
            "status": status,
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "wall_s": ended_at - started,
            "ended_at": ended_at,
            "collected": names,
            "sweeping": not clean,
            "pid": pid,
        }
        self.answer(reply, collected)
        close_all(collected)
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
        argv = [ENTER, str(self.program_id), *counts, limits, BOX, ",".join(request["prepare"]), *request["argv"]]
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
            os.setpriority(os.PRIO_PROCESS, 0, 0)
            os.chdir(BOX)
            os.setresgid(self.program_id, self.program_id, self.program_id)
            # From uid 0 to another: the kernel empties the permitted, effective and ambient sets.
            os.setresuid(self.program_id, self.program_id, self.program_id)
            prepare(request["prepare"])
            os.close(3)
            if request["action"] == "check":
                return zygote.check
            assert self.zygote is not None
            self.zygote.take_arguments(request["argv"][1:])
            return self.zygote.run
        except BaseException as error:
            os.write(3, repr(error).encode())
            os._exit(1)

    def collect(self, names: list[str]) -> tuple[list[str], list[int]]:
        """Open the files the run was to produce, for "name/" all in that folder; what is missing, or no plain file, is
        left out.

        With the program's rights, now that none of its processes is alive: it may have closed its files to all others,
        and it must not be handed what it could not have read itself.
        """
        found: list[str] = []
        fds: list[int] = []
        if not names:
            return found, fds
        os.seteuid(self.program_id)
        try:
            for name in listed(names):
                try:
                    fd = open_inside(BOX, name)
                except OSError:
                    continue
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    found.append(name)
                    fds.append(fd)
                else:
                    os.close(fd)
        finally:
            # Raises the capabilities again: see capabilities(7) on changes of the effective uid.
            os.seteuid(0)
        return found, fds

    def sweep(self) -> bool:
        """Empty the scratch disk with the program's own uid. False where something could not be removed."""
        pid = os.fork()
        if pid == 0:
            try:
                os.setresgid(self.program_id, self.program_id, self.program_id)
                os.setresuid(self.program_id, self.program_id, self.program_id)
                for directory in SCRATCH:
                    empty(directory)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        return scratch_is_empty()


def enter_groups(entries: list[int]) -> None:
    """Enter the cgroups whose open files these are. "0" is the writer; the kernel checks the opener's rights."""
    for entry in entries:
        os.write(entry, b"0")


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


def load(files: list[tuple[str, int]], fds: list[int]) -> None:
    """Write the program's files where the program can read but not change them."""
    for (name, mode), source in zip(files, fds, strict=True):
        target = os.open(f"{PROGRAM_DIR}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        while os.sendfile(target, source, None, COPY_BYTES):
            pass
        os.close(target)
    close_all(fds)


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


def open_inside(directory: str, name: str) -> int:
    """Open a file below a directory that is the program's own: no part of its name may be a link, which could lead to
    what only the warden may read.
    """
    at = os.open(directory, os.O_PATH | os.O_CLOEXEC)
    *folders, last = name.split("/")
    for folder in folders:
        try:
            inner = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    try:
        return os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)


def listed(names: list[str]) -> list[str]:
    """The names, each folder replaced by what is in it; no more than `MOST_COLLECTED`."""
    files = []
    for name in names:
        if not name.endswith("/"):
            files.append(name)
            continue
        try:
            folder = open_inside(BOX, name[:-1])
        except OSError:
            continue
        try:
            files += [name + inner for inner in sorted(os.listdir(folder))]
        except NotADirectoryError:
            pass
        finally:
            os.close(folder)
    return files[:MOST_COLLECTED]


def scratch_is_empty() -> bool:
    return not any(os.listdir(directory) for directory in SCRATCH)


def empty(directory: str) -> None:
    """Remove everything in a directory, however deep, without recursion.

    Directories found inside others are first moved to the top, so that no path grows long and no more than one level
    is open at a time; under names that nobody can have taken, since they were not there to be known.
    """
    waiting = [f"{directory}/{name}" for name in os.listdir(directory)]
    prefix = f"{directory}/.{os.urandom(16).hex()}-"
    count = 0
    while waiting:
        path = waiting.pop()
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            continue
        os.chmod(path, 0o700)
        for name in os.listdir(path):
            inner = f"{path}/{name}"
            if stat.S_ISDIR(os.lstat(inner).st_mode):
                # A directory is renamed by writing its "..": it must be open to its owner.
                os.chmod(inner, 0o700)
                count += 1
                moved = f"{prefix}{count}"
                os.rename(inner, moved)
                waiting.append(moved)
            else:
                os.unlink(inner)
        os.rmdir(path)


def reserve_fds() -> None:
    while (fd := os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)) < RESERVED_FDS:
        pass
    os.close(fd)


def serve(fd: int) -> Program | None:
    """Serve the judge at the other end of a socket; see `Warden.serve`."""
    reserve_fds()
    return Warden(socket(fileno=fd)).serve()
