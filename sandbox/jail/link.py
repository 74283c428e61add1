"""A test script's conversation with the program it tests, which lies in another cell (`sandbox.jail.served`).

Asks, and reads the answers: plain data of exact types, or stand-ins for objects that stayed there
(`sandbox.jail.stand_ins`). Whatever goes wrong on the program's side ends this process at once: no `except` of the
script's can take it for something else.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import json
import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from sandbox.jail import crossing, ends
    from sandbox.jail.callbacks import Callbacks
    from sandbox.jail.changes import can_change, restore
    from sandbox.jail.elsewhere import names_a_file, surroundings
    from sandbox.jail.hearing import Hearing
    from sandbox.jail.shared import Copies
    from sandbox.jail.stand_ins import MODULE, Program, ProgramType, stand_in, standing_in
else:
    import crossing
    import ends
    from callbacks import Callbacks
    from changes import can_change, restore
    from elsewhere import names_a_file, surroundings
    from hearing import Hearing
    from shared import Copies
    from stand_ins import MODULE, Program, ProgramType, stand_in, standing_in

ANSWERS_FD = 5
REQUESTS_FD = 6
REPORT_FD = 7

DETAIL_CHARS = 3500

#: What a program may have given the test before a message that is too long, or a limit that the test runs into, is laid
#: to the program: a sixteenth of what may cross at once.
MOST_GIVEN_BYTES = crossing.MAX_FRAME_BYTES // 16

#: Questions whose answers say no more than what there is, if anything: beside reading them, the script has nothing of
#: them to do.
INTRODUCTIONS = frozenset({"names", "class", "seed"})

#: The first character of the report, while a limit that this process runs into is laid to the program, and before.
PROGRAMS, SCRIPTS = b"\n", b" "

#: Exceptions that end a loop or a generator of the script's in silence.
ENDS_LOOPS = (StopIteration, StopAsyncIteration, GeneratorExit)


class Link:
    """The conversation with the program."""

    def __init__(self) -> None:
        self.left_bytes = ends.MAX_BYTES
        self.answered = False
        """Whether the script has been given anything that it can work on."""
        self.looked = False
        """Whether it has asked for more than what stands under a name, as any import does."""
        self.reading = 0
        """How many answers are being read, one in another."""
        os.write(REPORT_FD, SCRIPTS)
        self.lock = threading.RLock()
        self.copies = Copies(self.own, self.written)
        self.classes: dict[int, type] = {}
        self.classes_by_name: set[int] = set()
        """Classes that the script has looked up, under names of classes only."""
        self.classes_by_other_names: set[int] = set()
        self.objects: dict[int, Any] = {}
        self.handed_out: collections.Counter[int] = collections.Counter()
        """How often each was."""
        self.made: collections.Counter[int] = collections.Counter()
        """How often of these by a class, called by its name."""
        self.callbacks = Callbacks()
        self.hearing = Hearing(self.lack)
        self.reckoned: set[int] = set()
        """Objects that arithmetic with plain data gave, and what was got from them."""
        self.held: dict[int, Any] = {}
        """What objects of plain types' subclasses hold, where that cannot change."""
        self.told: dict[tuple[int, str], Any] = {}
        """Numbers that objects said they are since the program was asked anything else."""
        self.surroundings = surroundings()
        self.exit = os._exit

    # -- the end

    def end(self, status: int, public: str = "", detail: str = "") -> NoReturn:
        """Tell how it ended. `public` holds nothing of the test's data."""
        try:
            self.lay_to(PROGRAMS if self.answered else SCRIPTS)
            words = json.dumps({"public": public[:200], "detail": detail[-DETAIL_CHARS:]})
            os.write(REPORT_FD, words.encode("ascii"))
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        finally:
            self.exit(status)

    def lack(self, what: str) -> NoReturn:
        """The test needs what it does not get here, and no program could pass it."""
        self.end(ends.BROKEN, f"the test needs what is not covered: {what}")

    # -- whose fault a limit is

    def lay_to(self, whom: bytes) -> None:
        os.pwrite(REPORT_FD, whom, 0)

    def answer(self) -> None:
        """From now on a limit that the script runs into is laid to the program."""
        if not self.answered:
            self.answered = True
            self.lay_to(PROGRAMS)

    @contextlib.contextmanager
    def on_data_of_the_program(self) -> Iterator[None]:
        """While it lasts, so are limits that reading the program's words runs into."""
        with self.lock:
            self.reading += 1
            if not self.answered:
                self.lay_to(PROGRAMS)
            try:
                yield
            finally:
                self.reading -= 1
                if not (self.reading or self.answered):
                    self.lay_to(SCRIPTS)

    # -- what the program's objects are

    def is_own(self, number: int) -> bool:
        """Whether the script made the object, and nothing else has handed it out."""
        return self.made[number] == self.handed_out[number]

    def sealed(self, number: int) -> bool:
        """Whether plain data may be expected in an object's place, and the program has seen them."""
        return number in self.reckoned and not self.is_own(number)

    def reckon(self, number: int, *, of_own: bool) -> None:
        """Such an object was given for plain data and one that was the script's own, or not."""
        self.reckoned.add(number)
        if of_own:
            self.made[number] += 1

    # -- messages

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """One question and its answer, functions of the script's called in between. Raises what the program raised."""
        with self.lock:
            self.hearing.unwound()
            self.send({"op": op, **fields, "changes": [] if op in INTRODUCTIONS else self.copies.changes()})
            if op != "get" and op not in INTRODUCTIONS:
                self.looked = True
                self.answer()
            while True:
                said = self.receive()
                if "call" not in said:
                    break
                self.answer()
                self.send(self.called_back(said), of_the_programs=True)
        if "raised" in said:
            error = self.exception(said["raised"], ending_is_meant=fields.get("special") == "__next__")
            self.hearing.unwind()
            raise error
        if "value" not in said:
            self.end(ends.OUTSIDE)
        if op == "get" and not is_reference(said["value"]):
            self.answer()
        return said

    def value(self, op: str, **fields: Any) -> Any:
        with self.on_data_of_the_program():
            said = self.ask(op, **fields)
            return self.copies.copy(said.get("shared"), self.read(said["value"]))

    def named(self, name: str, *, is_class: bool) -> Any:
        """What the program's module holds under a name, by which the script means a class or anything else."""
        found = self.value("get", name=name)
        if isinstance(found, ProgramType):
            number = vars(found)["_rkgrade_class"]
            if not is_class:
                self.classes_by_other_names.add(number)
            self.classes_by_name.add(number)
            self.classes_by_name -= self.classes_by_other_names
        return found

    def read(self, data: Any, most_depth: int = crossing.MAX_DEPTH) -> Any:
        try:
            return crossing.decode(data, self.special, most_depth)
        except (crossing.Outside, RecursionError) as error:
            self.end(ends.OUTSIDE, detail=str(error))

    def written(self, value: Any) -> object:
        try:
            return crossing.encode(value, self.own, crossing.MAX_TEST_DEPTH)
        except crossing.NotPlain as what:
            self.end(ends.BROKEN, f"the test hands the program {what}")

    def send(self, message: object, *, of_the_programs: bool = False) -> None:
        """`of_the_programs` is what the program had the script make."""
        try:
            data = memoryview(crossing.frame(message))
        except crossing.NotPlain as what:
            # Of its own making, or of what the program gave it in plenty?
            given_bytes = ends.MAX_BYTES - self.left_bytes
            status = ends.FAILED if of_the_programs or given_bytes > MOST_GIVEN_BYTES else ends.BROKEN
            self.end(status, f"the test hands the program {what}")
        while data:
            try:
                data = data[os.write(REQUESTS_FD, data) :]
            except BrokenPipeError:
                self.end(ends.LOST)

    def receive(self) -> dict[str, Any]:
        self.told.clear()
        try:
            return crossing.message(self.exactly(crossing.size(self.exactly(4))))
        except crossing.Outside as error:
            self.end(ends.OUTSIDE, detail=str(error))

    def exactly(self, length: int) -> bytes:
        self.left_bytes -= length
        if self.left_bytes < 0:
            self.end(ends.FLOOD)
        if ends.MAX_BYTES - self.left_bytes > MOST_GIVEN_BYTES:
            self.answer()
        try:
            return crossing.read_exactly(ANSWERS_FD, length)
        except crossing.Gone:
            self.end(ends.LOST)

    # -- calls

    def call(self, of: int, args: tuple[Any, ...], keywords: dict[str, Any], **fields: Any) -> Any:
        """Call an object, or a special method of it; arguments that were changed in place change here too."""
        for name, one in surroundings().items():
            if one != self.surroundings[name]:
                self.lack(f"{name} of its own for the program")
        for one in (*args, *keywords.values()):
            if (type(one) is str or hasattr(type(one), "__fspath__")) and names_a_file(str(one)):
                self.lack("files of its own for the program")
        written = {name: self.written(one) for name, one in keywords.items()}
        said = self.ask("call", of=of, args=[self.written(one) for one in args], keywords=written, **fields)
        changed = said.get("changed", {})
        if type(changed) is not dict:
            self.end(ends.OUTSIDE)
        for name, data in changed.items():
            if name.isdecimal() and int(name) < len(args):
                restore(args[int(name)], self.read(data, crossing.MAX_CHANGED_DEPTH))
            elif name in keywords:
                restore(keywords[name], self.read(data, crossing.MAX_CHANGED_DEPTH))
            else:
                self.end(ends.OUTSIDE)
        if "given" in said:
            return self.given(said["given"], args, keywords)
        return self.copies.copy(said.get("shared"), self.read(said["value"]))

    def given(self, name: object, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The very argument that a call has come to."""
        there = {str(index): one for index, one in enumerate(args)} | keywords
        if type(name) is not str or not can_change(there.get(name)):
            self.end(ends.OUTSIDE)
        return there[name]

    def called_back(self, asked: dict[str, Any]) -> object:
        """The program calls a function that the script gave it."""
        try:
            number, args, keywords = asked["call"], asked["args"], asked["keywords"]
            if (function := self.callbacks.get(number)) is None or type(args) is not list:
                raise crossing.Outside("no function")
            given = [self.read(one) for one in args]
            named = {name: self.read(one) for name, one in keywords.items()}
        except (KeyError, TypeError, AttributeError, crossing.Outside) as error:
            self.end(ends.OUTSIDE, detail=str(error))
        try:
            return {"value": self.written(function(*given, **named))}
        except BaseException as error:
            if self.hearing.is_a_check(error):
                self.hearing.hear(error)
            return {"raised": builtin_class(error), "text": str(error)}

    # -- what crosses in place of plain data

    def own(self, value: Any) -> object:
        if isinstance(value, Program):
            return {"own": value._rkgrade_number}
        if isinstance(value, type) and "_rkgrade_class" in vars(value):
            return {"own": vars(value)["_rkgrade_class"]}
        if isinstance(value, BaseException) and "_rkgrade_number" in value.__dict__:
            return {"own": value.__dict__["_rkgrade_number"]}
        if isinstance(value, BaseException):
            return {"exception": [builtin_class(value), str(value)]}
        if isinstance(value, type) and getattr(builtins, name := value.__name__, None) is value:
            return {"builtin": name}
        if isinstance(value, type) and issubclass(value, BaseException):
            raise crossing.NotPlain(f"a class of exceptions of its own: {value.__name__}")
        if (written := self.callbacks.written(value)) is not None:
            return written
        raise crossing.NotPlain(f"an object of its own: {type(value).__name__}")

    def special(self, name: str, inner: Any) -> Any:
        if name == "mine" and (function := self.callbacks.given_back(inner)) is not None:
            return function
        if name == "class":
            return self.class_of(crossing.needed(int, inner))
        if name == "type":
            return self.builtin(inner)
        if name == "coroutine":
            return self.awaited(crossing.needed(int, inner))
        if name == "refused" and inner == []:
            return NotImplemented
        if name == "object" and type(inner) is list and len(inner) == 2:
            number, kind = crossing.needed(int, inner[0]), inner[1]
            self.handed_out[number] += 1
            if number not in self.objects:
                made = self.kind(kind)
                if not issubclass(made, Program):
                    made = type(made.__name__, (Program,), {"__module__": MODULE})
                self.objects[number] = standing_in(made, number)
            return self.objects[number]
        raise crossing.Outside(name)

    async def awaited(self, number: int) -> Any:
        """What a coroutine of the program's comes to. It runs to its end there, and nothing of the test's beside it."""
        return self.value("await", of=number)

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
        return found if isinstance(found, type) and crossing.is_known(found) else object

    def class_of(self, number: int) -> type:
        if number in self.classes:
            return self.classes[number]
        with self.on_data_of_the_program():
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
        """What the program raised, as the script is to see it: from now on it has something to work on, and to tell."""
        self.answer()
        if type(said) is not dict or said.keys() != {"class", "text", "number", "args", "cause"}:
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
        if said["cause"] is not None:
            made.__cause__ = self.exception(said["cause"], ending_is_meant=True)
        self.hearing.raised.append(made)
        return made


def builtin_class(error: BaseException) -> str:
    """Name of the first class of an exception that is a builtin."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def is_reference(data: object) -> bool:
    return isinstance(data, dict) and data.keys() <= {"object", "class", "type"}
