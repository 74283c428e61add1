"""Calls of tools, as models write them into their text. Both forms are read, whichever a model was taught:

    <tool: python>                             the body is the tool's one text, as CWM has it (facebookresearch/cwm)
    print(6 * 7)
    </tool>

    <tool_call>                                arguments by name, as templates of Hermes and Qwen have it
    {"name": "python", "arguments": {"code": "print(6 * 7)"}}
    </tool_call>

Pure, and linear in the length of the text. Knows no tool.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_OPENED = re.compile(r"<tool: ?([\w.-]{1,64})>|<tool_call>")
_NAMED, _JSON = "</tool>", "</tool_call>"


@dataclass(frozen=True, slots=True)
class Call:
    """One call."""

    name: str
    body: str | None = None
    """What stands in a call of the first form, without the line ends around it."""
    arguments: dict[str, object] | None = None
    """Those of a call of the second form."""
    mistake: str | None = None
    """Why it is none, for the model to read; the rest means nothing then."""

    def text(self, argument: str) -> str | None:
        """The tool's one text, which in the second form is the argument of that name. None where there is none."""
        if self.arguments is None:
            return self.body
        value = self.arguments.get(argument)
        return value if isinstance(value, str) else None


def calls_of(text: str) -> list[Call]:
    """The calls in a model's turn, in order. What stands before the last `</think>` is thought, not called."""
    return [call for _, _, call in _found(text)]


def without_calls(text: str) -> str:
    """A turn's text without its calls: what a call holds is no answer."""
    kept, end = [], 0
    for start, stop, _ in _found(text):
        kept.append(text[end:start])
        end = stop
    return "".join([*kept, text[end:]])


def _found(text: str) -> list[tuple[int, int, Call]]:
    """Where each call begins and ends. One that is never closed was cut off, and runs to the end."""
    closing = text.rfind("</think>")
    if closing < 0 and text.lstrip().startswith("<think>"):
        return []
    at = max(0, closing)
    found = []
    while (opened := _OPENED.search(text, at)) is not None:
        close = _NAMED if opened[1] is not None else _JSON
        end = text.find(close, opened.end())
        body = text[opened.end() : end if end >= 0 else len(text)]
        at = end + len(close) if end >= 0 else len(text)
        if end < 0:
            call = Call(opened[1] or "", mistake=f"the call is not closed by {close}")
        else:
            call = Call(opened[1], body.strip("\r\n")) if opened[1] is not None else _of_json(body)
        found.append((opened.start(), at, call))
    return found


def _of_json(body: str) -> Call:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        return Call("", mistake=f"the call is not JSON: {error}")
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return Call("", mistake='a call is a JSON object with "name" and "arguments"')
    arguments = value.get("arguments", {})
    if not isinstance(arguments, dict):
        return Call("", mistake='"arguments" is a JSON object')
    return Call(value["name"], arguments=arguments)
