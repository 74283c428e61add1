"""What a test script is to hear of: those of its checks that failed, whoever would keep that to himself, and those that
never ran."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable
    from typing import Any, NoReturn

    from sandbox.jail import ends
    from sandbox.jail.outcomes import Failed, NotCovered
else:
    import ends
    from outcomes import Failed, NotCovered


class Hearing:
    def __init__(self, lack: Callable[[str], NoReturn]) -> None:
        self.lack = lack
        """Ends the script, for it needs what it does not get here."""
        self.asserting: set[int] = set()
        """Lines of the script on which something is asserted."""
        self.unheard: BaseException | None = None
        """What failed where nobody need hear of it, as in a function that the program called."""
        self.unasked: dict[Any, BaseException] = {}
        """What failed in futures, by those whose result nobody has asked for; in results of unittest's, by those of
        which nothing is asserted."""
        self.missed = ""
        """A check of the script's that has not run."""
        self.raised: list[BaseException] = []
        """What the program raised."""
        self._standing: dict[int, int] = {}

    def hear(self, error: BaseException | None) -> None:
        if isinstance(error, NotCovered):
            self.lack(str(error))
        self.unheard = self.unheard or error

    def miss(self, what: str) -> None:
        self.missed = self.missed or what

    def is_a_check(self, error: BaseException) -> bool:
        """Whether the script is to hear of an exception, whoever would keep it to himself."""
        return isinstance(error, (Failed, NotCovered)) or self.asserts_at(error.__traceback__)

    def is_raised(self, error: object) -> bool:
        return any(error is one for one in self.raised)

    def asserts_at(self, trace: types.TracebackType | None) -> bool:
        """Whether an exception came up while the script asserted something."""
        while trace is not None:
            code = trace.tb_frame.f_code
            # A lambda is written there, and fails elsewhere: `assert safe(lambda: 1 / 0) is None`.
            in_script = code.co_filename == ends.SCRIPT_NAME and code.co_name != "<lambda>"
            if in_script and trace.tb_lineno in self.asserting:
                return True
            trace = trace.tb_next
        return False

    # -- what the program has raised, on its way through the script

    def unwind(self) -> None:
        """It is about to be raised here: keep at which instruction each of the script's frames stands."""
        self._standing.clear()
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == ends.SCRIPT_NAME:
                self._standing[id(frame)] = frame.f_lasti
            frame = frame.f_back

    def unwound(self) -> None:
        self._standing.clear()

    def is_unwinding(self, frame: types.FrameType | None) -> bool:
        """Whether it is leaving the script's frame, from which what that was about to use then goes."""
        while frame is not None and frame.f_code.co_filename != ends.SCRIPT_NAME:
            frame = frame.f_back
        return frame is not None and self._standing.get(id(frame)) == frame.f_lasti
