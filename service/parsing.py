"""From a whole body to what it holds, or to a word on the field at fault."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from service.errors import InvalidRequest, invalid_request

T = TypeVar("T")

#: Bodies no larger than this are looked at again by a slower parser, where that can tell more.
_EXPLAINED_BYTES = 64 * 2**20

#: Lists and objects inside one another. pydantic's parser sets it.
MAX_LEVELS: Final = 200


def parse(model: TypeAdapter[T], body: BytesIO) -> T:
    """Check a JSON body, whose structure has been weighed, and let go of it. Raises InvalidRequest."""
    data = body.getvalue()
    body.close()
    try:
        return model.validate_json(data)
    except ValidationError as error:
        why = _no_json(error)
        if "recursion limit" in why:
            raise InvalidRequest(f"the body holds lists and objects more than {MAX_LEVELS} levels deep") from None
        if why and len(data) <= _EXPLAINED_BYTES:
            _explain(model, data)
        raise invalid_request(error) from None
    finally:
        del data


def _no_json(error: ValidationError) -> str:
    """Why it is no JSON; empty where it is."""
    if error.error_count() > 1:
        return ""
    [one] = error.errors(include_url=False, include_context=False, include_input=False)
    return one["msg"] if one["type"] == "json_invalid" else ""


def _explain(model: TypeAdapter[Any], data: bytes) -> None:
    """Raise InvalidRequest where a less strict parser can tell the field at fault.

    That is half a surrogate pair: JSON can spell it, and pydantic's parser gives its place as line and column.
    """
    try:
        model.validate_python(json.loads(data))
    except ValidationError as error:
        raise invalid_request(error) from None
    except (ValueError, RecursionError):
        return
