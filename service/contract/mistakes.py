"""Mistakes in what was sent: raised at the field that can be mended, and told in words of what was sent."""

from __future__ import annotations

from typing import Final, get_args

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from service.contract.fields import Kind

_KINDS: Final = frozenset(get_args(Kind))

#: By the part of a location that comes before them; None stands for its beginning.
_UNION_TAGS: Final = {
    None: _KINDS,
    "problem": frozenset({"inline", "stored"}),
    "inline": _KINDS,
    "interactor": frozenset({"testlib", "kattis"}),
    "checker": frozenset({"tokens", "exact", "lines", "lcb", "testlib", "kattis", "python"}),
}

#: Of two fields that exclude each other: the one that pydantic reports, and the other.
_EXACTLY_ONE: Final = {
    "source_xor_completion": ("completion", "source"),
    "source_xor_files": ("files", "source"),
    "text_xor_base64": ("base64", "text"),
}


#: What pydantic calls a thing by the type that it becomes here, and what JSON calls it.
_IN_JSON: Final = {"Tuple": "Array", "List": "Array", "Set": "Array", "Frozenset": "Array", "Dictionary": "Object"}


#: Past so many mistakes none is named: pydantic tells of all or none, at half a kilobyte each.
MOST_TOLD: Final = 1000


def inconsistent(loc: tuple[int | str, ...], sentence: str) -> ValidationError:
    """A mistake that shows only in the whole, at the field that can be mended."""
    details = InitErrorDetails(type=PydanticCustomError("inconsistent", sentence), loc=loc, input=None)
    return ValidationError.from_exception_data("Problem", [details])


def field_path(loc: tuple[int | str, ...]) -> str:
    """A pydantic error location as a path into the JSON that was sent, such as `problem.tests[3].input`.

    Leaves out the tags that pydantic puts in for members of a union, and after a name that is itself at fault: no such
    field was sent.
    """
    path = ""
    before: int | str | None = None
    for part in loc:
        if part == "[key]":
            continue
        if isinstance(part, int):
            path += f"[{part}]"
        elif isinstance(before, int) or part not in _UNION_TAGS.get(before, ()):
            path += f".{part}" if path else part
        before = part
    return path


def first_mistake(error: ValidationError) -> str:
    """The first of them in one line: its field, where it has one, and the sentence."""
    path, sentence = mistakes(error)[0]
    return f"{path}: {sentence}" if path else sentence


def mistakes(error: ValidationError) -> list[tuple[str, str]]:
    """Each mistake as the path of the field at fault (empty for the whole) and a sentence, in the order found; of more
    than MOST_TOLD how many there are.
    """
    if error.error_count() > MOST_TOLD:
        return [("", f"{error.error_count():,} mistakes, too many to name; most are fields that are not known")]
    found = []
    for one in error.errors(include_url=False, include_input=False):
        path, sentence = field_path(one["loc"]), one["msg"]
        if one["type"] in ("union_tag_invalid", "union_tag_not_found"):
            # pydantic names the object; what is at fault is the field that should say which member it is.
            context = one["ctx"]
            field = context["discriminator"].strip("'")
            path = f"{path}.{field}" if path else field
            missing = one["type"] == "union_tag_not_found"
            sentence = "Field required" if missing else f"Input should be one of {context['expected_tags']}"
        elif one["type"] in _EXACTLY_ONE:
            # Which of the two is at fault, nobody can say: both are named.
            field, other = _EXACTLY_ONE[one["type"]]
            found.append((f"{path.removesuffix(field)}{other}", sentence))
        elif one["type"] in ("too_long", "too_short"):
            kind = one["ctx"]["field_type"]
            if kind == "Value":
                # pydantic counts "items" of a string that a validator of ours has seen before.
                sentence = sentence.replace(" items ", " characters ").replace(" item ", " character ")
            sentence = sentence.replace(kind, _IN_JSON.get(kind, "String"), 1).replace(" after validation", "", 1)
        elif one["type"] == "model_type":
            sentence = "Input should be an object"
        elif one["type"] == "value_error":
            sentence = sentence.removeprefix("Value error, ")
        found.append((path, sentence))
    return found
