"""What is said of a body that is no JSON, or holds what no field may."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from pydantic import TypeAdapter

from service.contract import GradeRequest
from service.errors import InvalidRequest
from service.parsing import parse


def mistakes_of(model: TypeAdapter[Any], body: bytes) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        parse(model, BytesIO(body))
    return refused.value


REQUEST = {"problem": "sha256:" + "0" * 64, "language": "python", "source": "pass"}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"source": "\ud800"}, "source"),
        ({"id": "x\udfff"}, "id"),
        ({"language": "\ud800"}, "language"),
        ({"problem": "\ud800"}, "problem"),
        ({"problem": {"kind": "stdio", "tests": [{"input": "\ud800", "output": ""}]}}, "problem.tests[0].input"),
        ({"problem": {"kind": "call", "function": "f", "tests": [{"args": ["\ud800"], "expected": 1}]}},
         "problem.tests[0].args"),
    ],
)  # fmt: skip
def test_half_a_surrogate_pair_is_named_by_its_field(changed: dict[str, Any], field: str) -> None:
    error = mistakes_of(TypeAdapter(GradeRequest), json.dumps(REQUEST | changed).encode())
    assert [one.field for one in error.errors] == [field]
    assert "surrogate" in error.detail or "unicode" in error.detail
    assert error.status == 422


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b'{"id": "\\ud800"', b"\xff", b'"' + b"[" * 100_000, json.dumps(REQUEST | {"\ud800": 1}).encode()],
)
def test_what_no_field_can_be_named_for_is_named_by_its_place(body: bytes) -> None:
    error = mistakes_of(TypeAdapter(GradeRequest), body)
    assert error.status == 422
    assert error.errors == () or error.errors[0].field is None
    assert error.detail
