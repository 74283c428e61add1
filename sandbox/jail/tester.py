"""A test script at work, in a cell of its own: it runs here, and what it tests is asked for over two pipes.

The program itself lies in another cell (`sandbox.jail.served`), so that nothing it does reaches this interpreter: its
`assert`, its builtins and its frames are not these. The script finds a module `solution`, and the program's names among
its own, made of stand-ins. What a stand-in gives back is plain data of exact types, or a stand-in for an object that
stayed there.

An object is never equal to plain data by its own word. One whose class is a subclass of a plain type compares by what
it holds; any other is equal to no plain data at all. Nor is it asked in other ways that would let it say "equal": it is
not ordered against plain data; plain data are looked for in what iterating it gives; arithmetic with plain data may
give an object again, which then becomes no number and no truth, so that `abs(f(x) - 0.5) < 1e-6` cannot be bent; and
words like `startswith`, by which text and sets are asked, are not passed on. Whatever the class is called: the program
knows the names that a test uses.

The end is told by the exit status, and by a few words on a descriptor of their own. Whatever goes wrong on the
program's side ends this process at once: no `except` of the script's can take it for something else.
"""

from __future__ import annotations

import ast
import builtins
import collections
import importlib
import json
import linecache
import os
import sys
import threading
import traceback
import types
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from sandbox.jail import crossing, ends
else:
    import crossing
    import ends

SCRIPT_FD = 4
ANSWERS_FD = 5
REQUESTS_FD = 6
REPORT_FD = 7

MODULE = "solution"

DETAIL_CHARS = 3500

#: Questions whose answers can make the script run on and on.
ANSWERS = frozenset({"call", "attribute", "base"})

#: Exceptions that end a loop or a generator of the script's in silence.
ENDS_LOOPS = (StopIteration, StopAsyncIteration, GeneratorExit)

#: Special methods that are passed on as they are: none is given anything to compare with.
PASSED_ON = (
    "call len getitem setitem delitem iter next reversed enter exit bool int float complex index round abs neg pos "
    "invert trunc floor ceil repr str format bytes"
).split()

#: By which an object becomes a number, or true or false.
CONVERSIONS = frozenset("bool int float complex index round abs trunc floor ceil".split())

#: Those that are given another operand.
ORDERS = "lt le gt ge contains".split()
ARITHMETIC = [
    side + name
    for name in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split()
    for side in ("", "r", "i")
]

#: Methods of plain types that say yes or no.
PREDICATES = {"startswith", "endswith"} | {name for kind in (str, set, float) for name in dir(kind) if name[:2] == "is"}

#: Attributes of objects with such names that the program is asked for.
ASKED_FOR = frozenset({"__name__", "__qualname__", "__annotations__", "__dict__", "__doc__", "__module__"})


class Link:
    """The conversation with the program."""

    def __init__(self) -> None:
        self.left_bytes = ends.MAX_BYTES
        self.answered = False
        self.lock = threading.RLock()
        self.classes: dict[int, type] = {}
        self.objects: dict[int, Any] = {}
        self.functions: list[Callable[..., Any]] = []
        self.raised: list[BaseException] = []
        self.reckoned: set[int] = set()
        """Objects that arithmetic with plain data gave."""
        self.exit = os._exit

    # -- the end

    def end(self, status: int, public: str = "", detail: str = "") -> NoReturn:
        """Tell how it ended. `public` holds nothing of the test's data."""
        try:
            words = json.dumps({"public": public[:200], "detail": detail[-DETAIL_CHARS:]})
            os.write(REPORT_FD, words.encode("ascii"))
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        finally:
            self.exit(status)

    # -- messages

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """One question and its answer, functions of the script's called in between. Raises what the program raised."""
        with self.lock:
            self.send({"op": op, **fields})
            while True:
                said = self.receive()
                if "call" not in said:
                    break
                self.send(self.called_back(said))
        if "raised" in said:
            raise self.exception(said["raised"], ending_is_meant=fields.get("special") == "__next__")
        if "value" not in said:
            self.end(ends.OUTSIDE)
        if not self.answered and (op in ANSWERS or (op == "get" and not is_reference(said["value"]))):
            self.answered = True
            os.write(REPORT_FD, b"\n")
        return said

    def value(self, op: str, **fields: Any) -> Any:
        return self.read(self.ask(op, **fields)["value"])

    def read(self, data: Any) -> Any:
        try:
            return crossing.decode(data, self.special)
        except (crossing.Outside, RecursionError) as error:
            self.end(ends.OUTSIDE, detail=str(error))

    def written(self, value: Any) -> object:
        try:
            return crossing.encode(value, self.own)
        except crossing.NotPlain as what:
            self.end(ends.BROKEN, f"the test hands the program {what}")

    def send(self, message: object) -> None:
        try:
            data = memoryview(crossing.frame(message))
        except crossing.NotPlain as what:
            self.end(ends.BROKEN, f"the test hands the program {what}")
        while data:
            try:
                data = data[os.write(REQUESTS_FD, data) :]
            except BrokenPipeError:
                self.end(ends.LOST)

    def receive(self) -> dict[str, Any]:
        try:
            return crossing.message(self.exactly(crossing.size(self.exactly(4))))
        except crossing.Outside as error:
            self.end(ends.OUTSIDE, detail=str(error))

    def exactly(self, length: int) -> bytes:
        self.left_bytes -= length
        if self.left_bytes < 0:
            self.end(ends.FLOOD)
        try:
            return crossing.read_exactly(ANSWERS_FD, length)
        except crossing.Gone:
            self.end(ends.LOST)

    # -- calls

    def call(self, of: int, args: tuple[Any, ...], keywords: dict[str, Any], **fields: Any) -> Any:
        """Call an object, or a special method of it; arguments that were changed in place change here too."""
        written = {name: self.written(one) for name, one in keywords.items()}
        said = self.ask("call", of=of, args=[self.written(one) for one in args], keywords=written, **fields)
        changed = said.get("changed", {})
        if type(changed) is not dict:
            self.end(ends.OUTSIDE)
        for name, data in changed.items():
            if name.isdecimal() and int(name) < len(args):
                restore(args[int(name)], self.read(data))
            elif name in keywords:
                restore(keywords[name], self.read(data))
            else:
                self.end(ends.OUTSIDE)
        return self.read(said["value"])

    def called_back(self, asked: dict[str, Any]) -> object:
        """The program calls a function that the script gave it."""
        try:
            number, args, keywords = asked["call"], asked["args"], asked["keywords"]
            if type(number) is not int or not 0 <= number < len(self.functions) or type(args) is not list:
                raise crossing.Outside("no function")
            given = [self.read(one) for one in args]
            named = {name: self.read(one) for name, one in keywords.items()}
        except (KeyError, TypeError, AttributeError, crossing.Outside) as error:
            self.end(ends.OUTSIDE, detail=str(error))
        try:
            return {"value": self.written(self.functions[number](*given, **named))}
        except BaseException as error:
            return {"raised": builtin_class(error), "text": str(error)}

    # -- what crosses in place of plain data

    def own(self, value: Any) -> object:
        if isinstance(value, Program):
            return {"own": value.__dict__["_rkgrade_number"]}
        if isinstance(value, ProgramType) and "_rkgrade_class" in vars(value):
            return {"own": vars(value)["_rkgrade_class"]}
        if isinstance(value, BaseException):
            return {"exception": [builtin_class(value), str(value)]}
        if isinstance(value, type) and getattr(builtins, name := value.__name__, None) is value:
            return {"builtin": name}
        if callable(value):
            self.functions.append(value)
            return {"function": len(self.functions) - 1}
        raise crossing.NotPlain(f"an object of its own: {type(value).__name__}")

    def special(self, name: str, inner: Any) -> Any:
        if name == "class":
            return self.class_of(crossing.needed(int, inner))
        if name == "type":
            return self.builtin(inner)
        if name == "refused" and inner == []:
            return NotImplemented
        if name == "object" and type(inner) is list and len(inner) == 2:
            number, kind = crossing.needed(int, inner[0]), inner[1]
            if number not in self.objects:
                made = self.kind(kind)
                if not issubclass(made, Program):
                    made = type(made.__name__, (Program,), {})
                self.objects[number] = standing_in(made, number)
            return self.objects[number]
        raise crossing.Outside(name)

    def kind(self, data: Any) -> type:
        """A class: one of the program's, or a builtin that means no harm."""
        if type(data) is dict and len(data) == 1:
            if "class" in data:
                return self.class_of(crossing.needed(int, data["class"]))
            if "type" in data:
                return self.builtin(data["type"])
        raise crossing.Outside("no class")

    def builtin(self, name: Any) -> type:
        found = getattr(builtins, name, None) if type(name) is str else None
        if isinstance(found, type) and (name in crossing.TYPES or issubclass(found, BaseException)):
            return found
        return object

    def class_of(self, number: int) -> type:
        if number in self.classes:
            return self.classes[number]
        said = self.ask("class", of=number)
        about = self.read(said["value"])
        bases = said.get("bases")
        if type(about) is not dict or type(bases) is not list or type(about.get("name")) is not str:
            self.end(ends.OUTSIDE)
        try:
            made = stand_in(self, number, about, [self.kind(base) for base in bases])
        except (TypeError, ValueError) as error:
            self.end(ends.OUTSIDE, detail=str(error))
        self.classes[number] = made
        return made

    def exception(self, said: Any, *, ending_is_meant: bool) -> BaseException:
        """What the program raised, as the script is to see it."""
        if type(said) is not dict or said.keys() != {"class", "text", "number", "args"}:
            self.end(ends.OUTSIDE)
        try:
            kind = self.kind(said["class"])
            text, number = crossing.needed(str, said["text"]), crossing.needed(int, said["number"])
        except crossing.Outside as error:
            self.end(ends.OUTSIDE, detail=str(error))
        if not issubclass(kind, BaseException):
            kind = Exception
        if issubclass(kind, ENDS_LOOPS) and not (ending_is_meant and kind is StopIteration):
            kind, text = RuntimeError, f"the program raised {kind.__name__}"
            said["args"] = None
        args = [text] if said["args"] is None else self.read({"list": said["args"]})
        try:
            made = kind(*args)
        except Exception:
            made = Exception(text)
        made.__dict__["_rkgrade_number"] = number
        made.__dict__["_rkgrade_text"] = text
        self.raised.append(made)
        return made


class ProgramType(type):
    """The class of stand-ins for the program's classes."""

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        number = vars(cls).get("_rkgrade_class")
        if number is None:
            return super().__call__(*args, **keywords)
        return LINK[0].call(number, args, keywords)

    def __getattr__(cls, name: str) -> Any:
        number = vars(cls).get("_rkgrade_class")
        if number is None or name[:9] == "_rkgrade_" or (name[:2] == "__" and name not in ASKED_FOR):
            raise AttributeError(name)
        return LINK[0].value("attribute", of=number, name=name)

    def __setattr__(cls, name: str, value: Any) -> None:
        LINK[0].value("assign", of=vars(cls)["_rkgrade_class"], name=name, value=LINK[0].written(value))

    def __iter__(cls) -> Any:
        return LINK[0].call(vars(cls)["_rkgrade_class"], (), {}, special="__iter__")

    def __len__(cls) -> int:
        return whole(LINK[0].call(vars(cls)["_rkgrade_class"], (), {}, special="__len__"))

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: Any) -> Any:
        return LINK[0].call(vars(cls)["_rkgrade_class"], (key,), {}, special="__getitem__")


class Program(metaclass=ProgramType):
    """A stand-in for an object of the program's."""

    def __getattr__(self, name: str) -> Any:
        if name[:9] == "_rkgrade_" or (name[:2] == "__" and name not in ASKED_FOR):
            raise AttributeError(name)
        if name in PREDICATES:
            raise AttributeError(f"{name} is asked of plain data only, not of a {type(self).__name__}")
        return LINK[0].value("attribute", of=self.__dict__["_rkgrade_number"], name=name)

    def __setattr__(self, name: str, value: Any) -> None:
        LINK[0].value("assign", of=self.__dict__["_rkgrade_number"], name=name, value=LINK[0].written(value))

    def __delattr__(self, name: str) -> None:
        LINK[0].value("delete", of=self.__dict__["_rkgrade_number"], name=name)

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if isinstance(other, Program):
            number = self.__dict__["_rkgrade_number"]
            said = LINK[0].call(number, (other,), {}, special="__eq__")
            return NotImplemented if said is NotImplemented else said is True
        if type(self).__dict__.get("_rkgrade_plain"):
            return held(self) == other
        return NotImplemented

    def __hash__(self) -> int:
        if type(self).__dict__.get("_rkgrade_plain"):
            return hash(held(self))
        if type(self).__dict__.get("_rkgrade_hash") == "own":
            return whole(LINK[0].call(self.__dict__["_rkgrade_number"], (), {}, special="__hash__"))
        return hash(self.__dict__["_rkgrade_number"])

    def __repr__(self) -> str:
        said = LINK[0].call(self.__dict__["_rkgrade_number"], (), {}, special="__repr__")
        return said if isinstance(said, str) else object.__repr__(self)

    def __str__(self) -> str:
        said = LINK[0].call(self.__dict__["_rkgrade_number"], (), {}, special="__str__")
        return said if isinstance(said, str) else object.__repr__(self)


def builtin_class(error: BaseException) -> str:
    """Name of the first class of an exception that is a builtin."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def is_reference(data: object) -> bool:
    return isinstance(data, dict) and data.keys() <= {"object", "class", "type"}


#: The one link of this process, once there is one.
LINK: list[Link] = []


def held(value: Program) -> Any:
    """What an object of a plain type's subclass holds."""
    return LINK[0].value("base", of=value.__dict__["_rkgrade_number"])


def whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{type(value).__name__!r} object cannot be interpreted as an integer")
    return value


def standing_in(kind: type, number: int) -> Any:
    made: Any = object.__new__(kind)
    made.__dict__["_rkgrade_number"] = number
    return made


def stand_in(link: Link, number: int, about: dict[str, Any], bases: list[type]) -> type:
    """A class that stands in for one of the program's. Raises TypeError."""
    errors = tuple(base for base in bases if issubclass(base, BaseException))
    if errors:
        return type(about["name"], errors, {"__str__": told, "__getattr__": of_the_error, "__module__": MODULE})
    methods = about.get("methods")
    if type(methods) is not list:
        raise TypeError("no methods")
    inherited = tuple(base for base in bases if isinstance(base, ProgramType)) or (Program,)
    names: dict[str, Any] = {
        "__module__": MODULE,
        "_rkgrade_class": number,
        "_rkgrade_plain": about.get("plain") is True,
        "_rkgrade_hash": about.get("hash"),
    }
    plain = names["_rkgrade_plain"]
    for name in PASSED_ON:
        if f"__{name}__" in methods and name not in ("repr", "str"):
            names[f"__{name}__"] = passed_on(f"__{name}__")
    for name in (*ORDERS, *ARITHMETIC):
        if f"__{name}__" in methods and not (plain and name[:1] == "i"):
            names[f"__{name}__"] = operator(f"__{name}__")
    if about.get("hash") == "none" and not plain:
        names["__hash__"] = None
    return ProgramType(about["name"], inherited, names)


def passed_on(name: str) -> Callable[..., Any]:
    converts = name[2:-2] in CONVERSIONS

    def method(self: Program, *args: Any, **keywords: Any) -> Any:
        link, number = LINK[0], self.__dict__["_rkgrade_number"]
        if name == "__call__":
            return link.call(number, args, keywords)
        if converts and number in link.reckoned:
            raise TypeError(f"a {type(self).__name__} that was reckoned with plain data is no number")
        given = link.call(number, args, keywords, special=name)
        if number in link.reckoned and isinstance(given, Program):
            link.reckoned.add(given.__dict__["_rkgrade_number"])
        return given

    return method


def operator(name: str) -> Callable[[Program, Any], Any]:
    def method(self: Program, other: Any) -> Any:
        link, number = LINK[0], self.__dict__["_rkgrade_number"]
        ours = isinstance(other, Program)
        if not ours and type(self).__dict__.get("_rkgrade_plain"):
            return getattr(held(self), name)(other)
        if not ours and name == "__contains__":
            return any(one is other or one == other for one in iter(self))
        if name[2:-2] in ORDERS:
            reckoned = number in link.reckoned or (ours and other.__dict__["_rkgrade_number"] in link.reckoned)
            return NotImplemented if not ours or reckoned else link.call(number, (other,), {}, special=name)
        given = link.call(number, (other,), {}, special=name)
        if given is NotImplemented:
            return given
        if not ours or number in link.reckoned or other.__dict__["_rkgrade_number"] in link.reckoned:
            if not isinstance(given, Program):
                raise TypeError(f"a {type(self).__name__}, reckoned with plain data, gave no object of the program's")
            if given is not self:
                link.reckoned.add(given.__dict__["_rkgrade_number"])
        return given

    return method


def told(error: BaseException) -> str:
    text = error.__dict__.get("_rkgrade_text")
    return text if text is not None else Exception.__str__(error)


def of_the_error(error: BaseException, name: str) -> Any:
    if name[:2] == "__" or "_rkgrade_number" not in error.__dict__:
        raise AttributeError(name)
    return LINK[0].value("attribute", of=error.__dict__["_rkgrade_number"], name=name)


def restore(here: Any, there: Any) -> None:
    """Make an argument what a call made of it; lists in lists stay the same lists where they can."""
    if type(here) is not type(there) or isinstance(here, Program):
        return
    if type(here) is list:
        if len(here) == len(there):
            for index, (old, new) in enumerate(zip(here, there, strict=True)):
                if type(old) in (list, dict, set) and type(old) is type(new):
                    restore(old, new)
                else:
                    here[index] = new
        else:
            here[:] = there
    elif isinstance(here, (dict, set)):
        here.clear()
        here.update(there)
    elif isinstance(here, (bytearray, collections.deque)):
        here.clear()
        here.extend(there)
    elif type(there).__name__ == "ndarray" and here.shape == there.shape:
        here[...] = there


class Solution(types.ModuleType):
    """The module `solution`: what the script names of the program."""

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__" and name != "__all__":
            raise AttributeError(name)
        if name == "__all__":
            return list(self.__dict__["_rkgrade_public"])
        there = LINK[0].value("names", names=[name])
        if type(there) is not dict or name not in there:
            raise AttributeError(f"module {MODULE!r} has no attribute {name!r}", name=name, obj=self)
        return LINK[0].value("get", name=name) if there[name] is None else borrowed(there[name])

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system's own; a script that replaces what it tests, as mocks do, would test something else.
        if name[:2] != "__":
            LINK[0].end(ends.BROKEN, "the test replaces names of the program")
        super().__setattr__(name, value)


def borrowed(whence: object) -> Any:
    """A module of the library's, or a type in one, that the script uses by the program's import."""
    module, _, name = str(whence).partition(".")
    if module not in LENT:
        LINK[0].end(ends.OUTSIDE, detail=f"{whence} is not lent")
    found = importlib.import_module(module)
    if not name:
        return found
    kind = getattr(found, name, None)
    if name[:1] == "_" or not (isinstance(kind, type) or (module == "typing" and hasattr(kind, "__module__"))):
        LINK[0].end(ends.OUTSIDE, detail=f"{whence} is not lent")
    return kind


#: As `sandbox.jail.served` has it: none of these holds anything that could end this process.
LENT = frozenset(
    "bisect cmath collections copy datetime decimal fractions functools heapq itertools json math numpy operator "
    "random re statistics string typing".split()
)


def used(tree: ast.Module) -> set[str]:
    """Names that the script looks up and gives to nothing of its own."""
    looked_up: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (looked_up if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
    return looked_up - bound


def failure(link: Link, error: BaseException, *, in_suite: bool) -> NoReturn:
    """End as the exception that ended the script says."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    detail = "".join(line for line in lines if '"/rkgrade' not in line)
    if any(error is one for one in link.raised):
        link.end(ends.RAISED, f"raised {builtin_class(error)}", detail)
    if isinstance(error, SystemExit) and not in_suite:
        link.end(ends.PASSED if error.code in (None, 0, False) else ends.FAILED, detail=detail)
    if isinstance(error, ImportError):
        if error.name == MODULE:
            link.end(ends.MISSING, "the program lacks what the test imports from it", detail)
        link.end(ends.BROKEN, f"the test imports what is not to be had: {error.name}", detail)
    if isinstance(error, NameError) or (isinstance(error, AttributeError) and isinstance(error.obj, Solution)):
        link.end(ends.MISSING, "the program lacks a name that the test uses", detail)
    link.end(ends.FAILED, detail=detail)


def main(runner: str, entry_point: str) -> NoReturn:
    """Run the script; `entry_point` is empty where the problem names none."""
    link = Link()
    LINK.append(link)
    for name in ("crossing", "ends", "tester"):
        sys.modules.pop(name, None)
    suites = importlib.import_module("suites")
    sys.modules.pop("suites", None)
    sys.path[0] = "/box"
    sys.argv = ["test.py"]
    with open(SCRIPT_FD, "rb") as file:
        source = file.read()
    try:
        tree = ast.parse(source, "test.py")
        code = compile(source, "test.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        link.end(ends.BROKEN, f"the test script does not compile: {type(error).__name__}", str(error))
    linecache.cache["test.py"] = (len(source), None, source.decode("utf-8", "replace").splitlines(True), "test.py")
    loaded = link.receive()
    if "raised" in loaded:
        kind = link.exception(loaded["raised"], ending_is_meant=True)
        failure(link, kind, in_suite=False)
    names = {name for name in used(tree) if not hasattr(builtins, name)}
    wanted = sorted(names | ({entry_point} - {""}))
    there = link.value("names", names=wanted)
    if type(there) is not dict or not set(there) <= set(wanted):
        link.end(ends.OUTSIDE)
    if entry_point and entry_point not in there:
        link.end(ends.MISSING, f"the program defines no {entry_point}")
    solution = Solution(MODULE)
    solution.__dict__["_rkgrade_public"] = [name for name in there if name in names and name[:1] != "_"]
    solution.__spec__ = ModuleSpec(MODULE, None)
    sys.modules[MODULE] = solution
    module = types.ModuleType("__main__" if runner == "exec" else "test_solution")
    module.__file__ = "test.py"
    namespace = module.__dict__
    sys.modules[module.__name__] = module
    if runner == "pytest":
        sys.modules["pytest"] = suites.pytest_module()
    try:
        if runner == "exec":
            for name, whence in there.items():
                try:
                    namespace[name] = link.value("get", name=name) if whence is None else borrowed(whence)
                except Exception:
                    # It cannot cross: as good as not there, should the script come to it.
                    continue
        exec(code, namespace)
        if runner == "exec":
            if entry_point and suites.defines_check(tree) and not suites.calls_check(tree):
                namespace["check"](namespace[entry_point])
        else:
            suites.run(module)
    except suites.NotCovered as what:
        link.end(ends.BROKEN, f"the test needs what is not covered: {what}")
    except BaseException as error:
        failure(link, error, in_suite=runner == "pytest")
    link.end(ends.PASSED)
