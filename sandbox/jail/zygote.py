"""Running a Python submission in a fork of the warden's interpreter, as `python3 main.py` would run it.

The source is compiled twice. First by a child with the program's uid and limits (`check`), since compiling a hostile
source can crash or hang an interpreter; only when that went well by the warden itself, so that every test's fork
already holds the code. Modules of the standard library that the source imports by name are imported beforehand too,
for the same reason: the program imports them anyway, and gets them at once.

What a program can see differs from a fresh interpreter only in what is already in `sys.modules`; in the stack below its
first frame, and so in the recursion limit, which is higher by as much; in warnings of the compiler, which the check has
given already; and in that its objects outlive it where modules of others hold them. Where even that matters, the
language `python-exec` starts a fresh interpreter per test.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import os
import sys
import types
from importlib.machinery import SourceFileLoader
from os import getpid, kill

TYPE_CHECKING = False  # As in `typing`, whose import would cost every cell more than all of ours together.
if TYPE_CHECKING:
    from collections.abc import Sequence
    from signal import SIG_DFL, SIGINT
    from signal import signal as set_handler
    from typing import NoReturn
else:
    from _signal import SIG_DFL, SIGINT
    from _signal import signal as set_handler

#: What functions of this module find builtin names in: a copy, whatever a program does to the original.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]

SOURCE = "/prog/main.py"

#: Frames below the program's first one, which a fresh interpreter does not have.
FRAMES_BELOW = 3

#: Imported ahead of time where the source names them. Plain modules without submodules or import-time effects that
#: depend on the process (a package here would show submodules that the program never imported). And numpy, which takes
#: 0.1 s: it imports its submodules itself, all but `numpy.random`, whose state forks would share.
PRELOADABLE = frozenset(
    "abc array bisect cmath collections copy dataclasses datetime decimal enum fractions functools heapq io "
    "itertools math numpy operator os random re statistics string struct sys time typing".split()
)

#: Modules of the grader in the interpreter, which a program must not find.
OURS = ("warden", "disk", "wire", "zygote", "call", "nodes", "values")

#: Words of a source whose objects may do something visible when they are collected at exit: unflushed files, finalizers
#: and suspended generators, which reference cycles keep alive until then.
COLLECTED_AT_EXIT = (b"open", b"Wrapper", b"Buffered", b"__del__", b"weakref", b"yield")


def compiled() -> types.CodeType | None:
    """The source's code, or None, having said on stderr what is wrong with it, as the interpreter would."""
    try:
        return compile(read_source(), SOURCE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, OverflowError, MemoryError) as error:
        error.__traceback__ = None
        sys.excepthook(type(error), error, None)
        return None


def check() -> int:
    """Compile the source for no other reason than to see whether that goes well."""
    return 1 if compiled() is None else 0


def read_source() -> bytes:
    with open(SOURCE, "rb") as file:
        return file.read()


def imported(source: bytes) -> set[str]:
    """Names that lines at the left margin import, by their look alone.

    A syntax tree would be exact, and hundreds of times the size of a hostile source. A name that only looks imported
    costs nothing but its import.
    """
    names: set[str] = set()
    for line in source.splitlines():
        words = line.replace(b",", b" ").split(None, 32)
        if words and words[0] in (b"import", b"from") and line[:1] in b"if":
            named = words[1:2] if words[0] == b"from" else words[1:]
            names.update(word.decode("ascii", "replace") for word in named)
    return names


class Zygote:
    """The submission, compiled, in an interpreter made ready to run it: all that a fork then does is to run."""

    def __init__(self, call: Sequence[str] = (), code: types.CodeType | None = None) -> None:
        """Compile the source, known to compile, import what it names, and take on the face of `python3 main.py`.

        `call` names a function of the program's that is to be called, and its prelude; empty where the program runs as
        a whole. From here on `sys` is the program's; the warden uses none of what is changed. `code`: what the source
        compiles to, in a process that is to run it once and fork nothing.
        """
        source = read_source()
        if code is None:
            for name in sorted(imported(source) & PRELOADABLE):
                try:
                    __import__(name)
                except ImportError:
                    pass  # Not on this host: the program, if it really imports it, is told so.
        self.code = code or compile(source, SOURCE, "exec", dont_inherit=True)
        self.owns_files_or_finalizers = any(word in source for word in COLLECTED_AT_EXIT)
        # Bound before any program runs, which may rebind or break whatever module it can reach.
        self.exit = os._exit
        self.run_atexit = atexit._run_exitfuncs
        self.collect = gc.collect
        self.modules = sys.modules
        calling = __import__("call") if call else None
        for name in OURS:
            sys.modules.pop(name, None)
        sys.path[0] = os.path.dirname(SOURCE)
        open_standard_streams()
        self.caller = calling and calling.Caller(*call)
        sys.setrecursionlimit(sys.getrecursionlimit() + FRAMES_BELOW)
        del source
        if code is None:
            # The collector must not touch, and so copy, every page of the zygote in each child.
            gc.collect()
            gc.freeze()

    def take_arguments(self, argv: Sequence[str]) -> None:
        """What the program finds in `sys.argv`, its own path first."""
        sys.argv = list(argv)

    def run(self) -> int:
        """Run the program as `__main__` and end the process as the interpreter would, but for its own teardown.

        A full teardown would touch, and so copy, nearly every page of the zygote, for three times the cost of a
        trivial test. What a program can observe of it is done here in the interpreter's order: threads are waited
        for, exit hooks called, streams flushed, and the program's own objects destroyed.
        """
        if self.caller is not None:
            self.caller.run(self.code)
        status = 0
        interrupted = False
        # Made here, not in the zygote, whose objects the collector is told to leave alone; and bound to no name of this
        # frame, so that `finish` can let go of it.
        self.modules["__main__"] = main_module()
        try:
            try:
                exec(self.code, self.modules["__main__"].__dict__)
            finally:
                flush(report=False)
        except SystemExit as request:
            status = exit_status(request)
        except BaseException as error:
            status = report_uncaught(error)
            interrupted = isinstance(error, KeyboardInterrupt)
        self.finish(status, interrupted)

    def finish(self, status: int, interrupted: bool) -> NoReturn:
        """Wait for threads, call exit hooks, flush, destroy the program's objects, flush again, and exit."""
        try:
            wait_for_threads(self.modules.get("threading"))
            self.run_atexit()
            if not flush(report=True):
                status = 120
            self.modules.pop("__main__", None)
            if self.owns_files_or_finalizers:
                self.collect()
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
            flush(report=False)
        finally:
            if interrupted:
                # So that whoever waits for the program sees of what it died, as the interpreter does.
                set_handler(SIGINT, SIG_DFL)
                kill(getpid(), SIGINT)
            self.exit(status)


def main_module() -> types.ModuleType:
    """The module that a script runs as, its names in the order in which the interpreter gives them."""
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __loader__=SourceFileLoader("__main__", SOURCE),
        __annotations__={},
        __builtins__=builtins,
        __file__=SOURCE,
        __cached__=None,
    )
    return main


def open_standard_streams() -> None:
    """Text streams over descriptors 0 to 2, like those that the interpreter made over the warden's own."""
    for number, name, mode in ((0, "stdin", "rb"), (1, "stdout", "wb"), (2, "stderr", "wb")):
        old = getattr(sys, name)
        raw = io.FileIO(number, mode, closefd=False)
        raw.name = f"<{name}>"
        buffer = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
        stream = io.TextIOWrapper(
            buffer, old.encoding, old.errors, "\n" if number else None, line_buffering=number == 2
        )
        stream.mode = mode[0]  # type: ignore[misc]  # As the interpreter does.
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def exit_status(request: SystemExit) -> int:
    """The status that `raise SystemExit(code)` asks for; anything but a number is printed, and is a 1."""
    code = request.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF
    try:
        text = str(code)
    except BaseException:
        text = ""
    say(f"{text}\n")
    return 1


def say(text: str) -> None:
    """Write to the program's stderr, wherever that is, or not at all."""
    try:
        sys.stderr.write(text)
    except BaseException:
        pass


def report_uncaught(error: BaseException) -> int:
    """Tell the program's hook of the exception that ended it, without frames of ours; gives the exit status."""
    below = error.__traceback__ and error.__traceback__.tb_next
    error.__traceback__ = below
    if not hasattr(sys, "excepthook"):
        say("sys.excepthook is missing\n")
        sys.__excepthook__(type(error), error, below)
        return 1
    try:
        sys.excepthook(type(error), error, below)
    except SystemExit as request:
        return exit_status(request)
    except BaseException as second:
        second.__context__ = None
        second.__traceback__ = second.__traceback__ and second.__traceback__.tb_next
        say("Error in sys.excepthook:\n")
        sys.__excepthook__(type(second), second, second.__traceback__)
        say("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, below)
    return 1


def report_ignored(culprit: object, error: BaseException) -> None:
    """As the interpreter does with exceptions that have nobody to go to."""
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
    say(f"Exception ignored in: {culprit!r}\n")
    sys.__excepthook__(type(error), error, error.__traceback__)


def wait_for_threads(threading: types.ModuleType | None) -> None:
    if threading is not None:
        try:
            threading._shutdown()
        except BaseException as error:
            report_ignored(threading, error)


def flush(*, report: bool) -> bool:
    """Flush stdout and stderr; False where stdout could not be written, which the interpreter reports as 120."""
    flushed = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException as error:
            if name == "stdout":
                flushed = False
                if report:
                    report_ignored(stream, error)
    return flushed
