"""Running a Python submission in a fork of the warden's interpreter, as `python3 main.py` would run it.

The source is compiled twice. First by a child with the program's uid and limits (`check`), since compiling a hostile
source can crash or hang an interpreter; only when that went well by the warden itself, so that every test's fork
already holds the code. Modules of the standard library that the source imports by name are imported beforehand too,
for the same reason: the program imports them anyway, and gets them at once.

What a program can see differs from a fresh interpreter only in what is already in `sys.modules`, and in the recursion
limit, which is higher by the frames below the program's first. Where even that matters, the language `python-exec`
starts a fresh interpreter per test.
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

TYPE_CHECKING = False  # As in `typing`, whose import would cost every cell more than all of ours together.
if TYPE_CHECKING:
    from typing import NoReturn

SOURCE = "/prog/main.py"

#: Frames below the program's first one, which a fresh interpreter does not have.
FRAMES_BELOW = 3

#: Imported ahead of time where the source names them. Plain modules without submodules or import-time effects that
#: depend on the process (a package here would show submodules that the program never imported).
PRELOADABLE = frozenset(
    "abc array bisect cmath collections copy dataclasses datetime decimal enum fractions functools heapq io "
    "itertools math operator os random re statistics string struct sys time typing".split()
)

#: Modules of the grader in the interpreter, which a program must not find.
OURS = ("wire", "zygote")

#: Words of a source whose objects may do something visible when they are collected at exit: unflushed files and
#: finalizers, which reference cycles keep alive until then.
COLLECTED_AT_EXIT = (b"open", b"Wrapper", b"Buffered", b"__del__", b"weakref")


def check() -> int:
    """Compile the source and say on stderr what is wrong with it, as the interpreter would."""
    try:
        compile(read_source(), SOURCE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, OverflowError, MemoryError) as error:
        error.__traceback__ = None
        sys.excepthook(type(error), error, None)
        return 1
    return 0


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

    def __init__(self) -> None:
        """Compile the source, known to compile, import what it names, and take on the face of `python3 main.py`.

        From here on `sys` is the program's; the warden uses none of what is changed.
        """
        source = read_source()
        for name in sorted(imported(source) & PRELOADABLE):
            __import__(name)
        self.code = compile(source, SOURCE, "exec", dont_inherit=True)
        self.main = types.ModuleType("__main__")
        self.main.__dict__.update(
            __file__=SOURCE,
            __builtins__=builtins,
            __loader__=SourceFileLoader("__main__", SOURCE),
            __cached__=None,
            __annotations__={},
        )
        self.owns_files_or_finalizers = any(word in source for word in COLLECTED_AT_EXIT)
        # Bound before any program runs, which may rebind or break whatever module it can reach.
        self.exit = os._exit
        self.run_atexit = atexit._run_exitfuncs
        self.collect = gc.collect
        sys.modules["__main__"] = self.main
        for name in OURS:
            del sys.modules[name]
        sys.argv = [SOURCE]
        sys.path[0] = os.path.dirname(SOURCE)
        open_standard_streams()
        sys.setrecursionlimit(sys.getrecursionlimit() + FRAMES_BELOW)
        del source
        # The collector must not touch, and so copy, every page of the zygote in each child.
        gc.collect()
        gc.freeze()

    def run(self) -> int:
        """Run the program as `__main__` and end the process as the interpreter would, but for its own teardown.

        A full teardown would touch, and so copy, nearly every page of the zygote, for three times the cost of a
        trivial test. What a program can observe of it is done here in the interpreter's order: threads are waited
        for, exit hooks called, streams flushed, and the program's own objects destroyed.
        """
        status = 0
        try:
            exec(self.code, self.main.__dict__)
        except SystemExit as request:
            status = exit_status(request)
        except KeyboardInterrupt:
            # The interpreter ends itself by SIGINT; so rare that its own teardown may do it.
            raise
        except BaseException as error:
            # Without this frame, as the program's author would see it.
            below = error.__traceback__ and error.__traceback__.tb_next
            sys.excepthook(type(error), error.with_traceback(below), below)
            status = 1
        self.finish(status)

    def finish(self, status: int) -> NoReturn:
        """Wait for threads, call exit hooks, flush, destroy the program's objects, flush again, and exit."""
        try:
            if "threading" in sys.modules:
                sys.modules["threading"]._shutdown()
            self.run_atexit()
            if not flush():
                status = 120
            destroy(self.main.__dict__)
            if self.owns_files_or_finalizers:
                self.collect()
            flush()
        finally:
            self.exit(status)


def open_standard_streams() -> None:
    """Text streams over descriptors 0 to 2, like those that the interpreter made over the warden's own."""
    for number, name, mode in ((0, "stdin", "rb"), (1, "stdout", "wb"), (2, "stderr", "wb")):
        old = getattr(sys, name)
        raw = open(number, mode, closefd=False)
        stream = io.TextIOWrapper(raw, old.encoding, old.errors, "\n" if number else None, line_buffering=number == 2)
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
    print(code, file=sys.stderr)
    return 1


def flush() -> bool:
    """Flush stdout and stderr; False where stdout could not be written, which the interpreter reports as 120."""
    flushed = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException as error:
            if stream is sys.stdout:
                flushed = False
                print(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr)
    return flushed


def destroy(namespace: dict[str, object]) -> None:
    """Drop the program's globals as the interpreter does: private names first, the builtins never."""
    for name in list(namespace):
        if isinstance(name, str) and name.startswith("_") and not name.startswith("__"):
            namespace[name] = None
    for name in list(namespace):
        if name != "__builtins__":
            namespace[name] = None
