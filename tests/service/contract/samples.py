"""What the tests of the contract send, and what they are told of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from service.contract import mistakes

ID = "sha256:" + "0123456789abcdef" * 4
TESTS = [{"input": "1 2\n", "output": "3\n"}]
PROBLEM = {"kind": "stdio", "tests": TESTS}
REQUEST = {"problem": PROBLEM, "language": "python", "source": "print(3)"}

POINTED = {"input": "", "output": "", "points": 1, "group": "a"}

LONE_SURROGATE = json.loads(r'"a\ud800"')


def refused(model: type[BaseModel] | TypeAdapter[Any], sent: object) -> dict[str, str]:
    """Field path -> message of each mistake."""
    validate = model.validate_python if isinstance(model, TypeAdapter) else model.model_validate
    with pytest.raises(ValidationError) as caught:
        validate(sent)
    return dict(mistakes(caught.value))
