"""What is said of what was sent wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from service.contract import MAX_SOURCE_CHARS, BatchRequest, ExecRequest, GradeRequest, field_path, mistakes
from tests.service.contract.samples import ID


def test_a_field_path_keeps_fields_that_are_named_like_union_tags() -> None:
    assert field_path(("problem", "inline", "checker", "tokens", "case_sensitive")) == (
        "problem.checker.case_sensitive"
    )
    assert field_path(("items", 3, "tokens", "inline")) == "items[3].tokens.inline"
    assert field_path(("stdio", "tests", 0, "stdio")) == "tests[0].stdio"
    assert field_path(("problem", "inline", "stdio", "tests")) == "problem.tests"
    assert field_path(()) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"source": "x" * (MAX_SOURCE_CHARS + 1)},
         {"source": f"String should have at most {MAX_SOURCE_CHARS} characters, not {MAX_SOURCE_CHARS + 1}"}),
        ({"source": None}, dict.fromkeys(("source", "completion"),
         "Give exactly one of `source` and `completion`, as a string")),
        ({"completion": ""}, dict.fromkeys(("source", "completion"),
         "Give exactly one of `source` and `completion`, as a string")),
        ({"problem": {"kind": "stdio", "tests": [{"input": "", "output": "", "name": "n" * 257}]}},
         {"problem.tests[0].name": "String should have at most 256 characters, not 257"}),
        ({"problem": {"kind": "stdio", "tests": [{"input": "", "output": ""}],
                      "checker": {"type": "kattis", "language": "cpp"}}},
         dict.fromkeys(("problem.checker.source", "problem.checker.files"),
                       "Give exactly one of `source` and `files`")),
        ({"problem": {"kind": "stdio", "tests": [{"input": "", "output": ""}],
                      "checker": {"type": "kattis", "language": "cpp", "source": "", "flags": [""] * 65}}},
         {"problem.checker.flags": "Array should have at most 64 items, not 65"}),
        ({"limits": 2}, {"limits": "Input should be an object"}),
        ({"problem": {"kind": "stdio", "tests": [3]}}, {"problem.tests[0]": "Input should be an object"}),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_the_words_of_what_was_sent(changed: dict[str, Any], said: dict[str, str]) -> None:
    sent = {"problem": ID, "language": "python", "source": "pass"} | changed
    with pytest.raises(ValidationError) as caught:
        GradeRequest.model_validate_json(json.dumps(sent))
    assert dict(mistakes(caught.value)) == said


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"items": []}, ("items", "Array should have at least 1 item, not 0")),
        ({"items": [1]}, ("items[0]", "Input should be an object")),
        ("a string", ("", "Input should be an object")),
    ],
)
def test_no_mistake_is_told_in_words_of_python(sent: object, said: tuple[str, str]) -> None:
    with pytest.raises(ValidationError) as caught:
        BatchRequest.model_validate_json(json.dumps(sent))
    assert mistakes(caught.value)[0] == said


def test_what_a_check_of_ours_says_is_told_in_its_own_words() -> None:
    with pytest.raises(ValidationError) as caught:
        ExecRequest.model_validate_json(json.dumps({"command": "\0"}))
    assert mistakes(caught.value) == [("command", "A command cannot hold a NUL")]
