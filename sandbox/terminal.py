"""A pseudo-terminal (pty(7)): its master stays with who owns it, its slave is handed into a cell.

It is made out here, and only the one descriptor goes in. A devpts of the cell's own would let each program make
terminals of which the kernel has some thousand for the whole host; so a cell has neither `/dev/ptmx`, `/dev/pts` nor
`/dev/tty`, and its programs reach this terminal and no other. What has not been read, either way, waits in the kernel:
some KiB, and then whoever writes waits. Knows nothing of cells.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import termios

#: Of an input flag that `termios` does not name (termios(3)): erasing takes off a whole character of UTF-8.
_IUTF8 = 0o40000

#: A read comes back with no more than the kernel keeps for one.
READ_BYTES = 32 * 1024


class Terminal:
    """`close` it. Reading and writing wait for nothing."""

    def __init__(self, rows: int, columns: int, *, uid: int) -> None:
        """`uid`: whose programs may open it again, as scripts do by /dev/stderr. Raises OSError."""
        self._master, self._slave = os.openpty()
        try:
            os.set_blocking(self._master, False)
            os.fchmod(self._slave, 0o600)
            # Without CAP_CHOWN it is of use all the same, but cannot be opened again.
            with contextlib.suppress(PermissionError):
                os.fchown(self._slave, uid, -1)
            attributes = termios.tcgetattr(self._slave)
            attributes[0] |= _IUTF8
            termios.tcsetattr(self._slave, termios.TCSANOW, attributes)
            self.resize(rows, columns)
        except BaseException:
            self.close()
            raise

    def take_slave(self) -> int:
        """The descriptor for the cell; whoever takes it closes it once it is sent."""
        slave, self._slave = self._slave, -1
        return slave

    def fileno(self) -> int:
        return self._master

    def resize(self, rows: int, columns: int) -> None:
        """Tell of the window's size; the foreground job has SIGWINCH where it changed."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> bytes:
        """What was written to it; empty once nobody holds the other end. Raises BlockingIOError for nothing yet."""
        try:
            return os.read(self._master, READ_BYTES)
        except OSError as error:
            if error.errno == errno.EIO:
                return b""
            raise

    def write(self, data: bytes | memoryview) -> int:
        """Type; how much of it was taken, all of it where nobody is there to read it. Raises BlockingIOError."""
        try:
            return os.write(self._master, data)
        except OSError as error:
            if error.errno == errno.EIO:
                return len(data)
            raise

    def close(self) -> None:
        """Hang up: the session of processes whose terminal it is has SIGHUP."""
        for fd in (self._master, self._slave):
            if fd >= 0:
                os.close(fd)
        self._master = self._slave = -1
