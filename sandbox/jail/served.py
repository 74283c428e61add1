"""The program under a test script: its module, served to whoever is at the other end of two pipes.

Runs in the program's own process, in a cell without the script. Each message asks for one thing: a name of the module,
an attribute, a call. Plain data cross as such; any other object stays here and is known by a number. What comes back is
one of

    {"value": ..., "changed": {"0": ...}}    with the arguments that the call changed in place
    {"raised": {"class": ..., "args": ..., "text": ...}}
    {"call": number, "args": ..., "keywords": ...}      a function of the script's is to be called first

Nothing here guards these answers: the program shares this interpreter, and may say what it likes. All it can gain is to
say a value, as any function does: what is expected lies in the script's cell, and so does whatever compares
(`sandbox.jail.tester`).
"""

from __future__ import annotations

import builtins
import enum
import json
import os
import sys
import types
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from sandbox.jail import crossing
    from sandbox.jail.call import OURS, RECURSION_LIMIT, depth
    from sandbox.jail.shared import Originals
    from sandbox.jail.values import MODULE
    from sandbox.jail.zygote import SOURCE, main_module, read_source, report_uncaught
else:
    import crossing
    from call import OURS, RECURSION_LIMIT, depth
    from shared import Originals
    from values import MODULE
    from zygote import SOURCE, main_module, read_source, report_uncaught

#: What functions of this module find builtin names in: a copy, whatever a program does to the original.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]

REQUESTS_FD = 4
ANSWERS_FD = 5

#: Plain types whose subclasses compare by what they hold.
BASES = (bool, int, float, str, bytes, list, tuple, dict, frozenset, set)

#: How many exceptions are told, of which one was raised from the next.
MOST_CAUSES = 4

#: Types of the interpreter's that a script may ask for, as it does by `isinstance`.
KINDS: dict[type, str] = {
    types.GeneratorType: "generator",
    types.FunctionType: "function",
    types.MethodType: "method",
    property: "property",
}

CHANGEABLE = frozenset({"set", "deque", "dict", "Counter", "OrderedDict", "defaultdict", "bytearray", "array"})


class Server:
    """The objects that the script's side knows by number, and the way there."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.originals = Originals()
        self.functions: dict[int, Any] = {}
        """Those of the script's, by their numbers there."""
        self.of_the_test: dict[int, int] = {}
        """Their numbers, by their ids here, where they can be handed back."""
        self.write = os.write
        self.calling = RLock()
        """Held by the thread that calls a function of the script's: there is one conversation."""
        self.dumps = json.dumps

    # -- messages

    def send(self, message: object) -> None:
        data = memoryview(crossing.frame(message))
        while data:
            data = data[self.write(ANSWERS_FD, data) :]

    def serve(self, *, until_answered: bool = False) -> dict[str, Any]:
        """Do what is asked, until the other side has gone, or has answered a question of ours."""
        while True:
            asked = crossing.receive(REQUESTS_FD)
            if "op" not in asked and until_answered:
                return asked
            self.send(self.answer(asked))

    def answer(self, asked: dict[str, Any]) -> object:
        try:
            self.originals.change(asked["changes"], self.decode)
            reply = getattr(self, "do_" + asked["op"])(asked)
            crossing.frame(reply)
            return reply
        except crossing.Gone:
            raise
        except BaseException as error:
            return self.raised(error)

    def raised(self, error: BaseException, causes: int = MOST_CAUSES) -> dict[str, Any]:
        said: dict[str, Any] = {
            "class": self.special(type(error)),
            "text": "",
            "number": self.number(error),
            "args": None,
        }
        said["cause"] = (
            None if causes == 0 or error.__cause__ is None else self.raised(error.__cause__, causes - 1)["raised"]
        )
        try:
            said["text"] = str(error)[:10_000]
            said["args"] = [crossing.encode(one, self.special) for one in error.args]
            crossing.frame(said)
        except BaseException:
            said["args"] = None
        return {"raised": said}

    def value(self, value: object) -> dict[str, object]:
        return {"value": crossing.encode(value, self.special)}

    def shared(self, value: object) -> dict[str, object]:
        """What is held here, and the test may change there."""
        reply = self.value(value)
        number = self.originals.number(value, reply["value"])
        return reply if number is None else reply | {"shared": number}

    # -- objects

    def number(self, value: object) -> int:
        known = self.numbers.get(id(value))
        if known is None:
            known = self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return known

    def special(self, value: Any) -> object:
        if issubclass(type(value), type):
            if crossing.is_known(value):
                return {"type": value.__name__}
            return {"class": self.number(value)}
        if type(value) is types.CoroutineType:
            return {"coroutine": self.number(value)}
        number = self.of_the_test.get(id(value))
        if number is not None and not vars(value):
            return {"mine": number}
        return {"object": [self.number(value), self.special(type(value))]}

    def changed(self, value: object) -> object:
        return crossing.encode(value, self.special, crossing.MAX_CHANGED_DEPTH)

    def decode(self, data: Any) -> Any:
        return crossing.decode(data, self.decoded, crossing.MAX_TEST_DEPTH)

    def decoded(self, name: str, inner: Any) -> Any:
        if name == "own":
            return self.objects[inner]
        if name == "function":
            return self.function(*inner)
        if name == "iterator":
            return self.iterated(self.function(inner, None, None))
        if name == "builtin":
            return getattr(builtins, inner)
        if name == "exception":
            kind, text = inner
            return getattr(builtins, kind)(text)
        raise crossing.Outside(name)

    def iterated(self, step: Any) -> Iterator[Any]:
        while items := step():
            yield items[0]

    def function(self, number: int, name: str | None, doc: str | None, comes_back: bool = False) -> Any:
        """`comes_back` where the script takes it as its own again."""
        if number not in self.functions:
            made = self.functions[number] = self.calling_back(number, name, doc)
            if comes_back:
                self.of_the_test[id(made)] = number
        return self.functions[number]

    def calling_back(self, number: int, name: str | None, doc: str | None) -> Any:
        def of_the_test(*args: Any, **keywords: Any) -> Any:
            with self.calling:
                self.send({"call": number, **self.arguments(args, keywords)})
                reply = self.serve(until_answered=True)
            if "raised" in reply:
                raise getattr(builtins, reply["raised"])(reply["text"])
            return self.decode(reply["value"])

        if name is not None:
            of_the_test.__name__ = of_the_test.__qualname__ = name
        of_the_test.__doc__ = doc
        return of_the_test

    def arguments(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, object]:
        return {
            "args": [crossing.encode(one, self.special) for one in args],
            "keywords": {name: crossing.encode(one, self.special) for name, one in keywords.items()},
        }

    # -- what can be asked

    def do_names(self, asked: dict[str, Any]) -> object:
        """Which of these names the module has, and where it only borrowed one from a module of the library's."""
        found: dict[str, object] = {}
        for name in asked["names"]:
            if name in self.namespace:
                found[name] = lent(self.namespace[name], name)
        return {"value": {"dict": [[name, whence] for name, whence in found.items()]}}

    def do_get(self, asked: dict[str, Any]) -> object:
        return self.shared(self.namespace[asked["name"]])

    def do_attribute(self, asked: dict[str, Any]) -> object:
        return self.shared(getattr(self.objects[asked["of"]], asked["name"]))

    def do_assign(self, asked: dict[str, Any]) -> object:
        setattr(self.objects[asked["of"]], asked["name"], self.decode(asked["value"]))
        return self.value(None)

    def do_delete(self, asked: dict[str, Any]) -> object:
        delattr(self.objects[asked["of"]], asked["name"])
        return self.value(None)

    def do_call(self, asked: dict[str, Any]) -> object:
        """Of an object, or of a special method of its class."""
        target = self.objects[asked["of"]]
        args = [self.decode(one) for one in asked["args"]]
        keywords = {name: self.decode(one) for name, one in asked["keywords"].items()}
        if "special" in asked:
            if asked["special"] == "__exit__" and isinstance(args[1], BaseException):
                # Classes of the program's own exceptions have no name over there.
                args[0] = type(args[1])
            kept = getattr(type(target), asked["special"])(target, *args)
        else:
            kept = target(*args, **keywords)
        if kept is NotImplemented:
            return {"value": {"refused": []}}
        given = None if "special" in asked else self.given(kept, asked, args, keywords)
        reply: dict[str, object]
        if given is not None:
            reply = {"value": None, "given": given}
        else:
            reply = self.shared(kept) if asked.get("special") == "__getitem__" else self.value(kept)
        changed = {
            str(name): after
            for name, before, now in [
                *((index, asked["args"][index], one) for index, one in enumerate(args)),
                *((name, asked["keywords"][name], one) for name, one in keywords.items()),
            ]
            if (can_change(before) or (isinstance(before, dict) and "tuple" in before))
            and (after := crossing.encode(now, self.special, crossing.MAX_CHANGED_DEPTH)) != before
        }
        return reply | {"changed": changed} if changed else reply

    def given(self, kept: object, asked: dict[str, Any], args: list[Any], keywords: dict[str, Any]) -> str | None:
        """By which name a call was given what it came to, where that can change: the script is to find it the same."""
        for index, one in enumerate(args):
            if one is kept and can_change(asked["args"][index]):
                return str(index)
        return next(
            (name for name, one in keywords.items() if one is kept and can_change(asked["keywords"][name])), None
        )

    def do_seed(self, asked: dict[str, Any]) -> object:
        """Where random numbers begin, as the script has sown them."""
        if asked["module"] == "random":
            __import__("random").seed(self.decode(asked["value"]))
        elif (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed(self.decode(asked["value"]))
        return self.value(None)

    def do_dir(self, asked: dict[str, Any]) -> object:
        return self.value(dir(self.objects[asked["of"]]))

    def do_copy(self, asked: dict[str, Any]) -> object:
        import copy

        return self.value((copy.deepcopy if asked["deep"] else copy.copy)(self.objects[asked["of"]]))

    def do_await(self, asked: dict[str, Any]) -> object:
        import asyncio

        return self.value(asyncio.run(self.objects[asked["of"]]))

    def do_base(self, asked: dict[str, Any]) -> object:
        """What an object of a plain type's subclass holds, as that plain type has it."""
        value = self.objects[asked["of"]]
        base: Any = next(base for base in BASES if issubclass(type(value), base))
        plain: Any
        if base in (int, float, str, bytes):
            plain = base.__add__(value, base())
        elif base is dict:
            plain = dict(dict.items(value))
        elif base in (list, tuple):
            plain = base.__getitem__(value, slice(None))
        else:
            plain = base.__or__(value, base())
        return self.value(base(plain))

    def do_class(self, asked: dict[str, Any]) -> object:
        """What the other side needs to know of a class to stand in for it."""
        kind = self.objects[asked["of"]]
        methods = {name for one in kind.__mro__ if one is not object for name in vars(one)}
        hashes = getattr(kind, "__hash__", None)
        said = {
            "name": kind.__name__,
            "bases": [self.special(base) for base in kind.__bases__],
            "methods": [name for name in methods if name[:2] == "__" == name[-2:]],
            "hash": "none" if hashes is None else "own" if hashes is not object.__hash__ else "identity",
            "plain": any(issubclass(kind, base) for base in BASES),
            "enum": issubclass(kind, enum.Enum),
            "kind": KINDS.get(kind),
        }
        return {"value": {"dict": [[name, value] for name, value in said.items() if name != "bases"]}} | {
            "bases": said["bases"]
        }


def can_change(data: Any) -> bool:
    """Whether such encoded data are of a type that a call may change in place."""
    return isinstance(data, list) or (isinstance(data, dict) and not data.keys().isdisjoint(CHANGEABLE))


def lent(value: Any, wanted: str) -> str | None:
    """Where a script's side finds the very same: "math", "typing.List"; None where the program must be asked."""
    if isinstance(value, types.ModuleType):
        return value.__name__ if crossing.is_lent(value.__name__, wanted) else None
    module: Any = getattr(value, "__module__", None)
    name = getattr(value, "__name__", None) or getattr(value, "_name", None)
    if module not in crossing.LENT or name != wanted or isinstance(value, types.FunctionType):
        return None
    if not (isinstance(value, type) or module == "typing"):
        return None
    return f"{module}.{name}" if getattr(sys.modules.get(module), name, None) is value else None


def main() -> NoReturn:
    """In a fresh interpreter: load the program in /prog, which is known to compile, and serve it."""
    code = compile(read_source(), SOURCE, "exec", dont_inherit=True)
    leave = os._exit
    for name in (*OURS, "changes", "crossing", "served", "shared"):
        sys.modules.pop(name, None)
    sys.argv = [SOURCE]
    sys.path[0] = os.path.dirname(SOURCE)
    module = types.ModuleType(MODULE)
    module.__file__ = SOURCE
    module.__dict__["__builtins__"] = builtins
    sys.modules[MODULE] = module
    sys.modules["__main__"] = main_module()
    server = Server(module.__dict__)
    sys.setrecursionlimit(RECURSION_LIMIT + depth(sys._getframe()) + 8)
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        server.send(server.raised(error))
        report_uncaught(error)
        leave(1)
    try:
        server.send({"value": None})
        server.serve()
    finally:
        leave(0)
