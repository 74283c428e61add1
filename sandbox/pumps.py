"""Pipes whose bytes pass through the judge: carried from one program to another and counted, or read and forgotten.

Where two programs talk to each other they share their pipes, and no byte of theirs passes here: that is several times
faster. A pump stands in where somebody must know how much is said, or must take what nobody else will. It is driven by
whoever polls (`sandbox.watching.wait_for`); it never blocks and never holds more than `READ_BYTES`.
"""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from contextlib import ExitStack

#: How much is read at once.
READ_BYTES = 64 * 1024


class Pump:
    """Carries what is written to one pipe on to another, or nowhere, up to a bound. Close it.

    As between programs that share a pipe, the end of either side becomes the other's: the writer's is end of file to
    the reader, the reader's is SIGPIPE to the writer. So is the bound: what writes on beyond it is cut off.

    The writer's end may be withheld from the reader until somebody closes the pump: what the reader does until then it
    does over what it has heard, and nothing else.
    """

    def __init__(self, source: int, most_bytes: int, target: int | None = None, *, withholds_end: bool = False) -> None:
        """Takes over the descriptors: a pipe's end to read from, and one to write to (None: what is read is
        forgotten)."""
        self._withholds_end = withholds_end
        self.withheld = False
        """Whether the writer has gone, and the reader, who has been handed everything, is not to know yet."""
        self._source = source
        self._target = target
        self._most_bytes = most_bytes
        self._held = b""
        self._open = True
        self.read_bytes = 0
        """What has come so far."""
        if target is not None:
            os.set_blocking(target, False)

    @property
    def over(self) -> bool:
        """Whether more came than the bound allows."""
        return self.read_bytes > self._most_bytes

    def waits_for(self) -> dict[int, int]:
        """Descriptors and the poll(2) events that call for `move`; none once it is closed.

        A reader that has gone shows as an error, which nobody needs to ask for.
        """
        if not self._open:
            return {}
        if self._target is None:
            return {self._source: select.POLLIN}
        if self.withheld:
            return {self._target: 0}
        return {self._target: select.POLLOUT} if self._held else {self._source: select.POLLIN, self._target: 0}

    def move(self, events: Mapping[int, int]) -> None:
        """Move what can be moved, after some of those events have come."""
        if self._target is not None and events.get(self._target, 0) & select.POLLERR:
            self.close()
        elif self._held:
            self._write()
        elif self._source in events:
            # Beyond the bound by no more than the byte that shows it: nobody is told that one.
            self._held = os.read(self._source, min(READ_BYTES, self._most_bytes + 1 - self.read_bytes))
            self.read_bytes += len(self._held)
            if self.over:
                self.close()
            elif self._held:
                self._write()
            elif self._withholds_end:
                self.withheld = True
            else:
                self.close()

    def _write(self) -> None:
        if self._target is None:
            self._held = b""
            return
        try:
            self._held = self._held[os.write(self._target, self._held) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.close()

    def close(self) -> None:
        if self._open:
            self._open = self.withheld = False
            os.close(self._source)
            if self._target is not None:
                os.close(self._target)


def new_pipe(stack: ExitStack) -> tuple[int, int]:
    """A pipe's ends to read and to write, for programs of other users; `stack` closes them."""
    reader, writer = os.pipe()
    stack.callback(os.close, reader)
    stack.callback(os.close, writer)
    # Some open /dev/stdin or /dev/stdout, which opens the pipe anew, by its rights.
    os.fchmod(reader, 0o666)
    return reader, writer


def new_pump(
    stack: ExitStack, source: int, most_bytes: int, target: int | None = None, *, withholds_end: bool = False
) -> Pump:
    """A pump on descriptors of its own; `stack` closes it."""
    pump = Pump(os.dup(source), most_bytes, None if target is None else os.dup(target), withholds_end=withholds_end)
    stack.callback(pump.close)
    return pump
