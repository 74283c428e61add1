"""What a test script holds of the program's: classes, and objects that stayed in the program's cell.

An object is never equal to plain data by its own word. One whose class is a subclass of a plain type compares by what
it holds; any other is equal to no plain data at all. Nor is it asked in other ways that would let it say "equal": it is
not ordered against plain data; plain data are looked for in what iterating it gives; arithmetic with plain data may
give an object again, of which nothing is asked that plain data could be asked, so that neither
`abs(f(x) - 0.5) < 1e-6` nor `len(f(x) ^ {1, 2}) == 0` can be bent; and words like `startswith` and `difference`, by
which plain data are compared, are not passed on. Whatever the class is called: the program knows the names that a test
uses.

One kind of object has its own word: one that the test itself made, by calling a class under a name that is a class's,
or by reckoning with such an object, and that nothing else has handed out. Nobody can have expected plain data in its
place; in a function's or a method's result plain data may be expected, be it this very object. Only a number, a truth
or an order is not to be had of what was reckoned from it and plain data: functions, too, have classes' names.

Knows what may be asked of the program, and of the conversation with it (`sandbox.jail.link`) nothing but how to ask.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable
    from typing import Any

    from sandbox.jail import askable, ends
    from sandbox.jail.link import Link
else:
    import askable
    import ends

MODULE = "solution"

#: The one link of this process, once there is one.
LINK: list[Link] = []


class ProgramType(type):
    """The class of stand-ins for the program's classes."""

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        number = vars(cls).get("_rkgrade_class")
        if number is None:
            return super().__call__(*args, **keywords)
        link = LINK[0]
        given = link.call(number, args, keywords)
        if number in link.classes_by_name and isinstance(given, Program):
            link.made[given._rkgrade_number] += 1
        return given

    def __getattr__(cls, name: str) -> Any:
        number = vars(cls).get("_rkgrade_class")
        if number is None or name[:9] == "_rkgrade_" or (name[:2] == "__" and name not in askable.ASKED_FOR):
            raise AttributeError(name)
        return asked(number, name, own=number in LINK[0].classes_by_name)

    @property
    def __doc__(cls) -> Any:  # type: ignore[override]  # Every class has one of its own, which is none of the program's.
        return documentation(vars(cls).get("_rkgrade_class"))

    @property
    def __annotations__(cls) -> Any:  # type: ignore[override]
        number = vars(cls).get("_rkgrade_class")
        return annotated(number) if number is not None and asks_itself(sys._getframe(1)) else {}

    def __dir__(cls) -> Any:
        number = vars(cls).get("_rkgrade_class")
        return super().__dir__() if number is None else LINK[0].value("dir", of=number)

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

    def __init_subclass__(cls, **keywords: Any) -> None:
        if cls.__module__ != MODULE:
            LINK[0].lack("classes of its own, made from the program's")

    @property
    def __dict__(self) -> Any:  # type: ignore[override]  # What the object has, not what stands in for it.
        return of_the_whole(self, "attribute", name="__dict__")

    def __dir__(self) -> Any:
        return of_the_whole(self, "dir")

    def __copy__(self) -> Any:
        return of_the_whole(self, "copy", deep=False)

    def __deepcopy__(self, memo: object) -> Any:
        return of_the_whole(self, "copy", deep=True)

    def __getstate__(self) -> Any:
        return self._rkgrade_number

    def __setstate__(self, number: int) -> None:
        object.__setattr__(self, "_rkgrade_number", number)

    def __getattr__(self, name: str) -> Any:
        if name[:9] == "_rkgrade_" or (name[:2] == "__" and name not in askable.ASKED_FOR):
            raise AttributeError(name)
        link, number = LINK[0], self._rkgrade_number
        if name in askable.OF_PLAIN and link.sealed(number):
            raise AttributeError(nothing(self))
        if name == "__annotations__" and not asks_itself(sys._getframe(1)):
            return {}
        return asked(number, name, own=link.is_own(number))

    def __setattr__(self, name: str, value: Any) -> None:
        LINK[0].value("assign", of=self._rkgrade_number, name=name, value=LINK[0].written(value))

    def __delattr__(self, name: str) -> None:
        LINK[0].value("delete", of=self._rkgrade_number, name=name)

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if isinstance(other, Program):
            number = self._rkgrade_number
            said = LINK[0].call(number, (other,), {}, special="__eq__")
            return NotImplemented if said is NotImplemented else said is True
        if vars(type(self)).get("_rkgrade_plain"):
            return held(self) == other
        # Whoever calls `__eq__` by its name takes NotImplemented for yes.
        return False if type(other) in askable.PLAIN else NotImplemented

    def __lt__(self, other: object) -> Any:
        if type(other) in askable.PLAIN:
            # As in `__eq__`.
            raise TypeError(f"a {type(self).__name__} is not ordered against plain data")
        return NotImplemented

    __le__ = __gt__ = __ge__ = __lt__

    def __hash__(self) -> int:
        if vars(type(self)).get("_rkgrade_plain"):
            return hash(held(self))
        if vars(type(self)).get("_rkgrade_hash") == "own":
            return whole(LINK[0].call(self._rkgrade_number, (), {}, special="__hash__"))
        return hash(self._rkgrade_number)

    def __bool__(self) -> bool:
        number = self._rkgrade_number
        if number in LINK[0].reckoned:
            raise TypeError(nothing(self))
        return True

    def __repr__(self) -> str:
        if LINK[0].sealed(self._rkgrade_number):
            return object.__repr__(self)
        said = LINK[0].call(self._rkgrade_number, (), {}, special="__repr__")
        return said if isinstance(said, str) else object.__repr__(self)

    def __str__(self) -> str:
        if LINK[0].sealed(self._rkgrade_number):
            return object.__repr__(self)
        said = LINK[0].call(self._rkgrade_number, (), {}, special="__str__")
        return said if isinstance(said, str) else object.__repr__(self)


def asked(number: int, name: str, *, own: bool) -> Any:
    """An attribute. One that compares is not called, but on the test's own, or without anything to compare with."""
    value = LINK[0].value("attribute", of=number, name=name)
    if own or name not in askable.COMPARING or not callable(value):
        return value

    def method(*args: Any, **keywords: Any) -> Any:
        if args or keywords or name in askable.PREDICATES:
            raise TypeError(f"{name} is asked of plain data only")
        return value()

    return method


def of_the_whole(value: Program, op: str, **fields: Any) -> Any:
    """What is asked of all that an object holds. Raises TypeError for what came of reckoning with plain data."""
    if value._rkgrade_number in LINK[0].reckoned:
        raise TypeError(nothing(value))
    return LINK[0].value(op, of=value._rkgrade_number, **fields)


def documentation(number: int | None) -> Any:
    return None if number is None else LINK[0].value("attribute", of=number, name="__doc__")


def annotated(number: int) -> Any:
    return LINK[0].value("attribute", of=number, name="__annotations__")


def asks_itself(frame: types.FrameType) -> bool:
    """Whether it is the script that asks. `functools.wraps` would make the program's annotations those of a function of
    the script's, where they could be resolved."""
    return frame.f_code.co_filename == ends.SCRIPT_NAME


def nothing(value: Program) -> str:
    return f"nothing is asked of a {type(value).__name__} that was reckoned with plain data"


def held(value: Program) -> Any:
    """What an object of a plain type's subclass holds.

    Asked once where it cannot change: `17 < f(x) < 18` must not be told two numbers. Raises TypeError for what came of
    reckoning with plain data.
    """
    link, number = LINK[0], value._rkgrade_number
    if number in link.held and number not in link.reckoned:
        return link.held[number]
    holds = of_the_whole(value, "base")
    if type(holds) in askable.FIXED:
        link.held[number] = holds
    return holds


def whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{type(value).__name__!r} object cannot be interpreted as an integer")
    return value


def standing_in(kind: type, number: int) -> Any:
    made: Any = object.__new__(kind)
    object.__setattr__(made, "_rkgrade_number", number)
    return made


def stand_in(link: Link, number: int, about: dict[str, Any], bases: list[type]) -> type:
    """A class that stands in for one of the program's. Raises TypeError."""
    errors = tuple(base for base in bases if issubclass(base, BaseException))
    if errors:
        of_errors = {"__str__": told, "__getattr__": of_the_error, "__module__": MODULE, "_rkgrade_class": number}
        return type(about["name"], errors, of_errors)
    methods = about.get("methods")
    if type(methods) is not list:
        raise TypeError("no methods")
    inherited = tuple(base for base in bases if isinstance(base, ProgramType)) or (Program,)
    names: dict[str, Any] = {
        "__module__": MODULE,
        "__doc__": property(lambda self: documentation(self._rkgrade_number)),
        "_rkgrade_class": number,
        "_rkgrade_plain": about.get("plain") is True,
        "_rkgrade_hash": about.get("hash"),
    }
    plain = names["_rkgrade_plain"]
    if "__len__" in methods and "__bool__" not in methods:
        names["__bool__"] = by_length
    for name in askable.PASSED_ON:
        if f"__{name}__" in methods and name not in ("repr", "str"):
            names[f"__{name}__"] = leave if name == "exit" else passed_on(f"__{name}__")
    for name in (*askable.ORDERS, *askable.ARITHMETIC):
        if f"__{name}__" in methods and not (plain and name[:1] == "i"):
            names[f"__{name}__"] = operator(f"__{name}__")
    for name in ("__aenter__", "__aexit__", "__aiter__"):
        if name in methods:
            names[name] = lambda *_: LINK[0].lack("async with and async for on the program's objects")
    if about.get("kind") in askable.KINDS:
        names["__class__"] = askable.KINDS[about["kind"]]
    if about.get("hash") == "none" and not plain:
        names["__hash__"] = None
    return ProgramType(about["name"], inherited, names)


def by_length(value: Any) -> bool:
    if value._rkgrade_number in LINK[0].reckoned:
        raise TypeError(nothing(value))
    return len(value) != 0


def settled(number: int, name: str) -> Any:
    """The number that an object says it is: the same until the program is asked anything else.

    `math.pow(x, 1) + math.pow(x, 2)` must not be told two numbers.
    """
    link = LINK[0]
    told, link.told = link.told, {}
    if (number, name) not in told:
        given = link.call(number, (), {}, special=name)
        if type(given) not in askable.FIXED:
            return given
        told[number, name] = given
    link.told = told
    return told[number, name]


def passed_on(name: str) -> Callable[..., Any]:
    converts = name[2:-2] in askable.CONVERSIONS

    def method(self: Program, *args: Any, **keywords: Any) -> Any:
        link, number = LINK[0], self._rkgrade_number
        if link.sealed(number) or (converts and number in link.reckoned):
            raise TypeError(nothing(self))
        if name == "__call__":
            return link.call(number, args, keywords)
        own = link.is_own(number)
        is_settled = name[2:-2] in askable.NUMBERS and not (own or args)
        given = settled(number, name) if is_settled else link.call(number, args, keywords, special=name)
        if number in link.reckoned and isinstance(given, Program):
            link.reckon(given._rkgrade_number, of_own=own)
        elif own and given is self and name in askable.GIVES_ITSELF:
            link.made[number] += 1
        return given

    return method


def leave(self: Program, kind: Any, error: Any, trace: Any) -> Any:
    """Leave a `with` block. What was asserted there the script is to hear of, whatever the program would swallow."""
    link, number = LINK[0], self._rkgrade_number
    if link.sealed(number):
        raise TypeError(nothing(self))
    swallowed = link.call(number, (None, error, None), {}, special="__exit__")
    if error is None:
        return swallowed
    return isinstance(error, Exception) and not link.hearing.asserts_at(trace) and bool(swallowed)


def operator(name: str) -> Callable[[Program, Any], Any]:
    def method(self: Program, other: Any) -> Any:
        link, number = LINK[0], self._rkgrade_number
        ours = isinstance(other, Program)
        if not ours and vars(type(self)).get("_rkgrade_plain"):
            return getattr(held(self), name)(other)
        reckoned = number in link.reckoned or (ours and other._rkgrade_number in link.reckoned)
        own = link.is_own(number)
        if name[2:-2] in askable.ORDERS and own and not reckoned:
            return link.call(number, (other,), {}, special=name)
        if not ours and name == "__contains__":
            return any(one is other or one == other for one in iter(self))
        if reckoned and name == "__contains__":
            raise TypeError(nothing(self))
        if name[2:-2] in askable.ORDERS:
            if not ours or reckoned:
                return Program.__lt__(self, other)
            return link.call(number, (other,), {}, special=name)
        if ours and link.sealed(other._rkgrade_number):
            own = False
        given = link.call(number, (other,), {}, special=name)
        if given is NotImplemented:
            return given
        if ours and not reckoned:
            return given
        if not isinstance(given, Program):
            raise TypeError(f"a {type(self).__name__}, reckoned with plain data, gave no object of the program's")
        if own and given is self and name in askable.GIVES_ITSELF:
            link.made[number] += 1
        else:
            link.reckon(given._rkgrade_number, of_own=own)
        return given

    return method


def told(error: BaseException) -> str:
    text = error.__dict__.get("_rkgrade_text")
    return text if text is not None else Exception.__str__(error)


def of_the_error(error: BaseException, name: str) -> Any:
    if name[:2] == "__" or "_rkgrade_number" not in error.__dict__:
        raise AttributeError(name)
    return LINK[0].value("attribute", of=error.__dict__["_rkgrade_number"], name=name)
