"""Lists, dicts and sets that attributes of the program's hold: they cross as copies, and what a test changes in its own
changes in the program's before that does anything else, as in `root.children.append(leaf)`.

Both sides keep the same few, those that were asked for last, and none that is long: a test looks at all of its copies
whenever it asks for something.
"""

from __future__ import annotations

import builtins
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sandbox.jail import crossing
    from sandbox.jail.changes import CHANGEABLE, restore
else:
    import crossing
    from changes import CHANGEABLE, restore

#: What functions of this module find builtin names in: a copy, whatever a program does to the original.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]

#: How many, and how long their JSON may be.
MOST = 8
MOST_CHARS = 4096


class Originals:
    """At the program: what its attributes hold."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}
        self.made = 0

    def number(self, value: Any, data: object) -> int | None:
        """Of what crosses as these data; None where a copy is all that the test has of it."""
        if type(value) not in CHANGEABLE or len(value) > MOST_CHARS or len(json.dumps(data)) > MOST_CHARS:
            return None
        number = next((number for number, one in self.known.items() if one is value), None)
        if number is None:
            number = self.made = self.made + 1
        keep(self.known, number, value)
        return number

    def change(self, changes: list[Any], decode: Callable[[Any], Any]) -> None:
        for number, data in changes:
            if number in self.known:
                restore(self.known[number], decode(data))


class Copies:
    """At the test."""

    def __init__(self, own: Callable[[Any], object], written: Callable[[Any], object]) -> None:
        """`own` is what crosses in place of what is no plain data, `written` all of a value, or the end of the test."""
        self.own = own
        self.written = written
        self.known: dict[int, tuple[Any, object]] = {}

    def copy(self, number: object, value: Any) -> Any:
        """The one copy of what has that number, as it is now."""
        if type(number) is not int or type(value) not in CHANGEABLE:
            return value
        known = self.known.get(number, (value, None))[0]
        if type(known) is not type(value):
            known = value
        restore(known, value)
        try:
            keep(self.known, number, (known, crossing.encode(known, self.own, crossing.MAX_TEST_DEPTH)))
        except crossing.NotPlain:
            # It holds what can only be handed out, such as a coroutine.
            self.known.pop(number, None)
        return known

    def changes(self) -> list[tuple[int, object]]:
        """What the test has changed since it was last asked."""
        changes = []
        for number, (copy, before) in self.known.items():
            if (now := self.written(copy)) != before:
                self.known[number] = (copy, now)
                changes.append((number, now))
        return changes


def keep(known: dict[int, Any], number: int, value: Any) -> None:
    known.pop(number, None)
    known[number] = value
    if len(known) > MOST:
        del known[next(iter(known))]
