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

The program is a module called `solution`, not `__main__`: what a main guard protects does not run. Plain data are None,
booleans, integers of any size, floats, strings, lists, tuples (handed out as lists) and dicts; keys are written as
strings, as JSON has no others. Values of subclasses and of numpy's scalar types count as values of those types. The
process ends once the result is written: threads are not waited for, exit hooks not called.

The C module below `json` serves, since every cell that calls functions pays for what is imported here.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from _json import encode_basestring, make_encoder, make_scanner

TYPE_CHECKING = False  # As in `typing`, whose import would cost more than all of ours together.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from sandbox.jail.zygote import SOURCE, exit_status, flush, main_module, read_source, report_uncaught, say
else:
    from zygote import SOURCE, exit_status, flush, main_module, read_source, report_uncaught, say

#: What functions of this module find builtin names in: a copy, whatever a program does to the original.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]

ARGUMENTS_FD = 4
RESULT_FD = 5

MODULE = "solution"

#: As deep as JSON from outside may be nested: what is deeper cannot have been expected.
MAX_DEPTH = 200

#: More than any tree of a problem has; a tree with more has a branch that leads back into it.
MAX_TREE_NODES = 1 << 20

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

SCALARS = frozenset({type(None), bool, int, float, str})


class NotPlain(Exception):
    """A result that is no plain data; says what it is."""


def refuse(value: object) -> NoReturn:
    """For what the encoder does not know: its type passed for another, as a metaclass can make it."""
    raise NotPlain(type_name(type(value)))


class ListNode:
    """A linked list's node, as LeetCode gives it."""

    __module__ = MODULE

    def __init__(self, val: Any = 0, next: ListNode | None = None) -> None:
        self.val = val
        self.next = next


class TreeNode:
    """A binary tree's node, as LeetCode gives it."""

    __module__ = MODULE

    def __init__(self, val: Any = 0, left: TreeNode | None = None, right: TreeNode | None = None) -> None:
        self.val = val
        self.left = left
        self.right = right


class Reading:
    """How the scanner is to read."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


scan = make_scanner(Reading)  # type: ignore[arg-type]  # typeshed takes the scanner for its own settings.
write = make_encoder(None, refuse, encode_basestring, None, ":", ",", False, False, True)


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
        """The function, bound to an instance of its class; a plain name is also looked for in a class `Solution`."""
        owner, _, name = self.function.rpartition(".")
        if not owner:
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


# -- plain data


def plain(value: Any, level: int) -> object:
    """The value made of exact plain types, the same object where it is so already. Raises NotPlain."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if level > MAX_DEPTH:
        raise NotPlain(f"{type_name(kind)} nested more than {MAX_DEPTH} deep")
    if issubclass(kind, (list, tuple)):
        base = list if issubclass(kind, list) else tuple
        # Not through iteration, which a subclass may have changed.
        items: Any = value if kind is base else base.__getitem__(value, slice(None))
        if SCALARS.issuperset(map(type, items)):
            return items
        return [plain(item, level + 1) for item in items]
    if issubclass(kind, dict):
        pairs: Any = dict.items(value)
        written = {key_text(key): plain(item, level + 1) for key, item in pairs}
        if len(written) < len(pairs):
            raise NotPlain("dict with two keys that JSON writes alike")
        return written
    return scalar(value)


def scalar(value: Any) -> object:
    """A value that holds no others as its exact plain type. Raises NotPlain."""
    kind = type(value)
    if kind in SCALARS:
        return value
    for exact in (int, float, str):
        if issubclass(kind, exact):
            # The only way to an exact value that asks nothing of the subclass.
            return exact.__add__(value, exact())  # type: ignore[operator]
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.generic):
        value = value.item()
        if type(value) in SCALARS:
            return value
    raise NotPlain(type_name(kind))


def key_text(key: object) -> str:
    """A dict's key as JSON has it. Raises NotPlain."""
    try:
        key = scalar(key)
    except NotPlain as what:
        raise NotPlain(f"dict with keys of type {what}") from None
    return key if isinstance(key, str) else "".join(write(key, 0))


def type_name(kind: type) -> str:
    return kind.__name__ if kind.__module__ in ("builtins", MODULE) else f"{kind.__module__}.{kind.__name__}"


# -- linked lists and trees


def node_in(annotation: object) -> tuple[str, bool]:
    """Which node, if any, an annotation speaks of, and whether of a list of them. It may be text, or half resolved."""
    text = annotation if isinstance(annotation, str) else repr(annotation)
    for name in ("ListNode", "TreeNode"):
        before, found, _ = text.partition(name)
        if found:
            return name, "ist[" in before
    return "", False


def annotated(function: Callable[..., Any]) -> tuple[list[object], object]:
    """Annotations of the parameters that arguments go to, by position, and of the result."""
    bound = isinstance(function, types.MethodType)
    inner: Any = function
    while (wrapped := getattr(inner, "__wrapped__", None)) is not None:
        inner = wrapped
    code = getattr(inner, "__code__", None)
    if code is None:
        return [], None
    names = code.co_varnames[: code.co_argcount][1 if bound else 0 :]
    said = getattr(inner, "__annotations__", {})
    return [said.get(name) for name in names], said.get("return")


def with_nodes(function: Callable[..., Any], arguments: list[Any], namespace: dict[str, Any]) -> list[Any]:
    """The arguments, with lists made into nodes where the function's annotations ask for them."""
    makers = {"ListNode": linked, "TreeNode": tree}
    parameters, _ = annotated(function)
    made = list(arguments)
    for position, (value, annotation) in enumerate(zip(arguments, parameters, strict=False)):
        name, several = node_in(annotation)
        if name and isinstance(value, list):
            make, kind = makers[name], namespace[name]
            made[position] = [make(one, kind) for one in value] if several else make(value, kind)
    return made


def without_nodes(value: object, function: Callable[..., Any], namespace: dict[str, Any]) -> object:
    """The result, with nodes made into lists again. Raises NotPlain."""
    name, several = node_in(annotated(function)[1])
    if name and several and isinstance(value, (list, tuple)):
        value = [[] if one is None else one for one in value]
    elif name and not several and value is None:
        value = []
    writers: dict[type, Callable[[Any], list[Any]]] = {ListNode: linked_values, TreeNode: tree_values}
    for own, writer in (("ListNode", linked_values), ("TreeNode", tree_values)):
        if isinstance(kind := namespace.get(own), type):
            writers[kind] = writer
    return flattened(value, writers, 0)


def flattened(value: object, writers: dict[type, Callable[[Any], list[Any]]], level: int) -> object:
    if type(value) in writers:
        return writers[type(value)](value)
    if isinstance(value, (list, tuple)) and level < MAX_DEPTH and not SCALARS.issuperset(map(type, value)):
        return [flattened(item, writers, level + 1) for item in value]
    return value


def linked(values: list[Any] | None, kind: type[ListNode]) -> ListNode | None:
    head = None
    for value in reversed(values or ()):
        node = kind(value)
        node.next = head
        head = node
    return head


def linked_values(head: ListNode | None) -> list[Any]:
    values: list[Any] = []
    met: set[int] = set()
    while head is not None:
        if id(head) in met:
            raise NotPlain("linked list that leads back into itself")
        met.add(id(head))
        values.append(head.val)
        head = head.next
    return values


def tree(values: list[Any] | None, kind: type[TreeNode]) -> TreeNode | None:
    """From its values level by level, None where a node is missing."""
    if not values or values[0] is None:
        return None
    root = kind(values[0])
    parents = [root]
    rest = iter(values[1:])
    for parent in parents:
        for side in ("left", "right"):
            value = next(rest, None)
            if value is not None:
                child = kind(value)
                setattr(parent, side, child)
                parents.append(child)
    return root


def tree_values(root: TreeNode) -> list[Any]:
    values: list[Any] = []
    waiting: list[TreeNode | None] = [root]
    for node in waiting:
        if node is None:
            values.append(None)
        else:
            values.append(node.val)
            waiting += (node.left, node.right)
        if len(values) > MAX_TREE_NODES:
            raise NotPlain("tree that leads back into itself")
    while values and values[-1] is None:
        values.pop()
    return values


def main(function: str, prelude: str) -> NoReturn:
    """In a fresh interpreter: call the function of the program in /prog, which is known to compile."""
    code = compile(read_source(), SOURCE, "exec", dont_inherit=True)
    for name in ("call", "zygote"):
        del sys.modules[name]
    sys.argv = [SOURCE]
    sys.path[0] = os.path.dirname(SOURCE)
    Caller(function, prelude).run(code)
