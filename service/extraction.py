"""Takes the program out of a model's raw text, by one of five named policies.

Fences are read as CommonMark 0.31 section 4.5 has them at the top level of a document: three or more
backticks or tildes, indented by at most three spaces, closed by a fence of the same character that is at
least as long. Lists and block quotes are not looked into. Knows nothing of languages beyond the names it is
handed.

What all policies but `lcb` share:

* Text up to the last `</think>` is not looked at. A text that opens with `<think>` and never closes it holds
  no program: whatever it drafts, the model had not settled on.
* A fence around nothing but white space is no fence, so a stray one at the end costs nothing.
* An unclosed fence runs to the end of the text and takes part in the choice, but choosing it gives no
  program. Such a text was cut off, mostly by the token limit: a torn program would be filed under the
  failures of programs rather than of format, and an earlier fence is a draft that the model went on to
  replace.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from service.contract import Extraction

# Takes the whole rest of the line, so a second run in it is never tried; neither part can fail once begun, so
# there is nothing to backtrack into and a scan is linear.
_RUN: Final = re.compile(r"(`{3,}|~{3,})([^\r\n]*)")
_MAX_INDENT: Final = 3


@dataclass(frozen=True, slots=True)
class _Fence:
    tag: str
    """First word of the info string, lower case."""
    indent: int
    start: int
    end: int
    closed: bool


def extract(completion: str, policy: Extraction, names: Collection[str]) -> str | None:
    """The program in `completion`, as it stands there, line ends included; None where there is none.

    `names` are the requested language's name and aliases in lower case; only `tagged` looks at them. Linear
    in the length of the text.
    """
    if policy == "lcb":
        return _lcb(completion)
    start = _answer_start(completion)
    if start is None:
        return None
    fences = [fence for fence in _fences(completion, start) if completion[fence.start : fence.end].strip()]
    chosen = _choose(fences, policy, names)
    if chosen is None or not chosen.closed:
        return None
    body = completion[chosen.start : chosen.end]
    if chosen.indent:
        # CommonMark: content loses as much indentation as the opening fence has, where it has that much.
        body = re.sub(rf"(?:\A|(?<=[\r\n])) {{1,{chosen.indent}}}", "", body)
    return body


def _choose(
    fences: list[_Fence],
    policy: Literal["last_fence", "first_fence", "only_fence", "tagged"],
    names: Collection[str],
) -> _Fence | None:
    match policy:
        case "last_fence":
            return fences[-1] if fences else None
        case "first_fence":
            return fences[0] if fences else None
        case "only_fence":
            return fences[0] if len(fences) == 1 else None
        case "tagged":
            return next((fence for fence in reversed(fences) if fence.tag in names), None)


def _answer_start(text: str) -> int | None:
    closing = text.rfind("</think>")
    if closing >= 0:
        return closing + len("</think>")
    return None if text.lstrip().startswith("<think>") else 0


def _fences(text: str, start: int) -> Iterator[_Fence]:
    opening: re.Match[str] | None = None
    for run in _RUN.finditer(text, start):
        if not _begins_line(text, start, run.start()):
            continue
        if opening is None:
            # Backticks in the info string make the line inline code.
            if run[1][0] == "~" or "`" not in run[2]:
                opening = run
        elif run[1][0] == opening[1][0] and len(run[1]) >= len(opening[1]) and not run[2].strip(" \t"):
            yield _fence(text, start, opening, _line_start(text, start, run.start()), closed=True)
            opening = None
    if opening is not None:
        yield _fence(text, start, opening, len(text), closed=False)


def _fence(text: str, start: int, opening: re.Match[str], end: int, *, closed: bool) -> _Fence:
    words = opening[2].split(maxsplit=1)
    body = opening.end() + (2 if text.startswith("\r\n", opening.end()) else 1)
    indent = opening.start() - _line_start(text, start, opening.start())
    return _Fence(words[0].lower() if words else "", indent, min(body, end), end, closed)


def _line_start(text: str, start: int, position: int) -> int:
    """`position` less the spaces before it, of which no more are looked at than a fence may have."""
    earliest = max(start, position - _MAX_INDENT)
    while position > earliest and text[position - 1] == " ":
        position -= 1
    return position


def _begins_line(text: str, start: int, position: int) -> bool:
    line = _line_start(text, start, position)
    return line == start or text[line - 1] in "\r\n"


def _lcb(text: str) -> str | None:
    """LiveCodeBench's rule: what lies between the last two lines that contain three backticks.

    Faithful to its faults, so that its figures can be compared: after a closed fence and an unclosed one this
    is the prose between them. Nothing is special about `</think>`, tildes or language tags.
    """
    last = text.rfind("```")
    if last < 0:
        return None
    end = text.rfind("\n", 0, last)
    before = text.rfind("```", 0, max(end, 0))
    if before < 0:
        return None
    return text[text.find("\n", before) + 1 : end] or None
