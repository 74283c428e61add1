"""Calling one function of a Python submission, and handing out what it returned as plain data.

Runs in the program's own process: in a fork of the zygote, or, for `python-exec`, in a fresh interpreter (`main`). The
arguments lie as a JSON array on one descriptor; on another, which is not stdout, one JSON object is written:

    {"value": ...}              what the function returned
    {"not_plain": "set"}        it returned what is no plain data, namely this
    {"raised": "ValueError"}    the first builtin class of the exception that ended it
    {"missing": "name"}         there is no such function

Nothing here guards that answer: the program shares this interpreter, and may patch it, look into its frames or write to
the descriptor itself. All it can gain is to say a value, as any function does. What is expected never enters the jail,
and the judge, outside, takes the object for data that a stranger sent (`sandbox.calls`).

The program is a module called `solution`, not `__main__`: what a main guard protects does not run. What plain data are
is told in `sandbox.jail.values`. The process ends once the result is written: threads are not waited for, exit hooks
not called.

The C module below `json` serves, since every cell that calls functions pays for what is imported here.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from _json import encode_basestring, make_scanner

TYPE_CHECKING = False  # As in `typing`, whose import would cost more than all of ours together.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from sandbox.jail.nodes import ListNode, TreeNode, with_nodes, without_nodes
    from sandbox.jail.values import MODULE, NotPlain, plain, write
    from sandbox.jail.zygote import SOURCE, exit_status, flush, main_module, read_source, report_uncaught, say
else:
    from nodes import ListNode, TreeNode, with_nodes, without_nodes
    from values import MODULE, NotPlain, plain, write
    from zygote import SOURCE, exit_status, flush, main_module, read_source, report_uncaught, say

#: What functions of this module find builtin names in: a copy, whatever a program does to the original.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]

#: What a program is not to find imported, where it is called in a fresh interpreter.
OURS = ("call", "nodes", "values", "zygote")

ARGUMENTS_FD = 4
RESULT_FD = 5

#: Of a program that asks for no prelude, as the interpreter has it, and of all others, as LiveCodeBench has it.
RECURSION_LIMIT = 1000
PRELUDE_RECURSION_LIMIT = 50_000

#: What both preludes import from, in LiveCodeBench's order, which decides between equal names.
STARRED = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json "
    "builtins typing"
).split()

#: Modules whose own names LiveCodeBench leaves out.
UNNAMED = ("builtins", "typing")


class Reading:
    """How the scanner is to read."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


scan = make_scanner(Reading)  # type: ignore[arg-type]  # typeshed takes the scanner for its own settings.


class Caller:
    """Ready to call: all that does not depend on the test is done."""

    def __init__(self, function: str, prelude: str) -> None:
        """`function` is "name" or "Class.method", `prelude` one of "none", "lcb" and "leetcode"."""
        self.function = function
        self.nodes = prelude == "leetcode"
        self.prelude = {} if prelude == "none" else starred()
        if self.nodes:
            self.prelude.update(ListNode=ListNode, TreeNode=TreeNode)
        self.recursion_limit = RECURSION_LIMIT if prelude == "none" else PRELUDE_RECURSION_LIMIT
        # Bound before any program runs, which may rebind or break whatever module it can reach.
        self.exit = os._exit
        self.write = os.write
        self.getpid = os.getpid
        self.limit_digits = sys.set_int_max_str_digits

    def run(self, code: types.CodeType) -> NoReturn:
        """Load the program, call its function, write what came of it, and end the process."""
        self.pid = self.getpid()
        arguments = self.read_arguments()
        module = types.ModuleType(MODULE)
        module.__file__ = SOURCE
        namespace = module.__dict__
        namespace["__builtins__"] = vars(builtins)
        namespace.update(self.prelude)
        sys.modules[MODULE] = module
        sys.modules["__main__"] = main_module()
        # Frames of ours below the program's own are not to count.
        sys.setrecursionlimit(self.recursion_limit + depth(sys._getframe()))
        status = 1
        try:
            exec(code, namespace)
            function = self.find(namespace)
            if function is None:
                self.send(f'{{"missing":{encode_basestring(self.function)}}}')
                say(f"the program defines no {self.function}\n")
            else:
                if self.nodes:
                    arguments = with_nodes(function, arguments, namespace)
                self.hand_out(function(*arguments), function, namespace)
                status = 0
        except SystemExit as request:
            status = exit_status(request)
        except BaseException as error:
            self.send(f'{{"raised":{encode_basestring(builtin_class(error))}}}')
            report_uncaught(error)
        finally:
            flush(report=False)
            self.exit(status)

    def read_arguments(self) -> list[Any]:
        with open(ARGUMENTS_FD, "rb") as file:
            text = file.read().decode()
        limit = sys.get_int_max_str_digits()
        self.limit_digits(0)
        try:
            arguments: list[Any] = scan(text, 0)[0]
        finally:
            self.limit_digits(limit)
        return arguments

    def find(self, namespace: dict[str, Any]) -> Callable[..., Any] | None:
        """The function, bound to an instance of its class; a plain name is also looked for in a class `Solution`, and a
        method of that class, where there is no such class, among the functions, as LiveCodeBench does."""
        owner, _, name = self.function.rpartition(".")
        if not owner or (owner == "Solution" and owner not in namespace):
            found: Callable[..., Any] | None = namespace.get(name)
            if found is not None and found is not self.prelude.get(name):
                return found
            owner = "Solution"
        made_by = namespace.get(owner)
        return None if made_by is None else getattr(made_by(), name, None)

    def hand_out(self, value: object, function: Callable[..., Any], namespace: dict[str, Any]) -> None:
        """Write the value; what of it cannot be written is said instead."""
        # The value may hold numbers of any length; the program itself has run under the interpreter's own limit.
        self.limit_digits(0)
        try:
            if self.nodes:
                value = without_nodes(value, function, namespace)
            text = "".join(write(plain(value, 0), 0))
        except NotPlain as reason:
            self.send(f'{{"not_plain":{encode_basestring(str(reason))}}}')
        else:
            self.send(f'{{"value":{text}}}')

    def send(self, text: str) -> None:
        """Write to the result's descriptor; a process that the program forked says nothing."""
        if self.getpid() == self.pid:
            data = memoryview(text.encode("utf-8", "surrogatepass"))
            while data:
                data = data[self.write(RESULT_FD, data) :]


def starred() -> dict[str, Any]:
    """What star imports of all of `STARRED`, and then imports of the modules themselves, bind."""
    bound: dict[str, Any] = {}
    for name in STARRED:
        module = __import__(name)
        public = getattr(module, "__all__", None) or [word for word in vars(module) if word[:1] != "_"]
        bound.update((word, getattr(module, word)) for word in public)
    bound.update((name, sys.modules[name]) for name in STARRED if name not in UNNAMED)
    return bound


def depth(frame: types.FrameType | None) -> int:
    frames = 0
    while frame is not None:
        frames += 1
        frame = frame.f_back
    return frames


def builtin_class(error: BaseException) -> str:
    """Name of the first class of an exception that is none of the program's."""
    return next((kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), "")


def main(function: str, prelude: str) -> NoReturn:
    """In a fresh interpreter: call the function of the program in /prog, which is known to compile."""
    code = compile(read_source(), SOURCE, "exec", dont_inherit=True)
    for name in OURS:
        del sys.modules[name]
    sys.argv = [SOURCE]
    sys.path[0] = os.path.dirname(SOURCE)
    Caller(function, prelude).run(code)
