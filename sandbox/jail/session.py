"""The warden of a session: commands run in its cell one beside another, and outlive each other, until it is closed.

Theory of operation
-------------------
The judge sends `session` in place of a first run. From then on the warden starts a process for each `exec`, as it does
for a test, but ends nothing that it did not start for that very exec: what a command leaves running goes on, as in a
terminal, within the cell's limits, and ends with the cell. Ends of processes come as SIGCHLD; those of commands are
told to the judge, any other is an orphan that process 1 has to reap.

Files are read and written here too, while processes of the program's are alive: with its rights, and each part of a
path opened by itself without following links (`disk`), whatever becomes of it meanwhile. What is read is handed out as
a descriptor; the judge takes from it what it wants.

What the program does here it does to itself: the warden has another uid, and its own memory and processes are counted
apart.
"""

from __future__ import annotations

import errno
import os
import select

TYPE_CHECKING = False  # As in `typing`, whose import would cost every cell more than all of ours together.
if TYPE_CHECKING:
    from signal import SIGCHLD, SIGKILL, set_wakeup_fd
    from signal import signal as set_handler

    from sandbox.jail import disk, warden, wire
else:
    from _signal import SIGCHLD, SIGKILL, set_wakeup_fd
    from _signal import signal as set_handler

    import disk
    import wire

#: How long a command may take to be under way before others are served again.
MOST_STARTING_MS = 1000


class Session:
    """Serves one judge until it hangs up."""

    def __init__(self, owner: warden.Warden) -> None:
        self.warden = owner
        self.commands: dict[int, int] = {}
        """By process id: the judge's number of the command."""

    def serve(self) -> None:
        woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        os.set_blocking(woken, False)
        # A full pipe wakes as well.
        set_wakeup_fd(wakes, warn_on_full_buffer=False)
        set_handler(SIGCHLD, lambda *_: None)
        self.warden.answer({"ready": True})
        poller = select.poll()
        poller.register(self.warden.sock, select.POLLIN)
        poller.register(woken, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll()]
            if woken in ready:
                drain(woken)
            self.reap()
            if self.warden.sock.fileno() in ready:
                received = wire.receive(self.warden.sock, wire.from_judge)
                if received is None:
                    return
                self.do(*received)

    def reap(self) -> None:
        """Take leave of every process that has ended, and tell of those that the judge knows."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self.commands.pop(pid, None)
            if number is not None:
                self.warden.answer({"ended": number, "status": status})

    def do(self, message: wire.Message, fds: list[int]) -> None:
        op, number = message["op"], message["number"]
        handed: list[int] = []
        try:
            if op == "exec":
                self.start(message, fds)
                return
            if op == "kill":
                self.kill(number)
                return
            said: wire.Message = {}
            if op == "write":
                self.warden.as_program(lambda: disk.write(message["path"], fds[0]))
            elif op == "read":
                handed.append(self.warden.as_program(lambda: disk.open_any(message["path"])))
            elif op == "list":
                said["more"] = self.warden.as_program(lambda: disk.list_into(message["path"], fds[0]))
            self.warden.answer({"done": number, **said}, handed)
        except OSError as error:
            self.warden.answer({"refused": number, "why": errno.errorcode.get(error.errno or 0, "EIO")})
        finally:
            for fd in (*fds, *handed):
                os.close(fd)

    def start(self, message: wire.Message, fds: list[int]) -> None:
        failure_fd, failed_fd = os.pipe()
        try:
            pid = self.warden.spawn(message, fds, failed_fd)
            os.close(failed_fd)
            # The exec closes it, at once; but what runs here already may stop a process that is about to become one of
            # its own. That one is then told of like any other: its failure to start is its own doing.
            poller = select.poll()
            poller.register(failure_fd, select.POLLIN)
            failure = os.read(failure_fd, 4096) if poller.poll(MOST_STARTING_MS) else b""
        finally:
            os.close(failure_fd)
        if failure:
            self.warden.answer({"fault": f"could not start a command: {failure.decode(errors='replace')}"})
            return
        self.commands[pid] = message["number"]

    def kill(self, number: int) -> None:
        """End the processes of a command that have not left its group."""
        for pid, command in self.commands.items():
            if command == number:
                try:
                    os.killpg(pid, SIGKILL)
                except ProcessLookupError:
                    pass
                # Its leader may have left it for another.
                os.kill(pid, SIGKILL)


def drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        return
