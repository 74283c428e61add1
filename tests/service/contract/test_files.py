"""Files of a request: their paths, what they hold, and how much of it."""

from __future__ import annotations

import base64

import pytest
from pydantic import TypeAdapter, ValidationError

from service.contract import FileContent, FileResult, Files
from service.contract.files import MAX_FILES_BYTES, both_file_and_folder

FILES: TypeAdapter[dict[str, FileContent]] = TypeAdapter(Files)


@pytest.mark.parametrize("data", [b"", b"text", "\u00fc\n".encode(), b"\xff", bytes(range(256))])
def test_contents_come_back_as_they_went(data: bytes) -> None:
    shown = FileResult.of(data).model_dump(exclude_none=True)
    assert list(shown) == (["base64"] if b"\xff" in data else ["text"])
    assert FileContent.model_validate(shown).data == data


@pytest.mark.parametrize("text", ["a", "ab==c", "\u00fc", "YQ", "YQ==\n", "Y Q=="])
def test_base64_is_strict(text: str) -> None:
    with pytest.raises(ValidationError, match="Not base64"):
        FileContent.model_validate({"base64": text})


@pytest.mark.parametrize(
    ("paths", "both"),
    [
        (["a", "b"], None),
        (["a/b", "a/c", "ab"], None),
        (["a/b", "a"], "a"),
        (["x/a/b", "x/a/b/c/d"], "x/a/b"),
        ([], None),
    ],
)
def test_nothing_is_both_a_file_and_a_folder(paths: list[str], both: str | None) -> None:
    assert both_file_and_folder(paths) == both


def test_all_together_are_bounded_to_the_byte() -> None:
    half = MAX_FILES_BYTES // 2
    encoded = base64.b64encode(bytes(half)).decode()
    FILES.validate_python({"a": {"text": "x" * half}, "b": {"base64": encoded}})
    with pytest.raises(ValidationError, match="at most 16 MiB"):
        FILES.validate_python({"a": {"text": "x" * (half + 1)}, "b": {"base64": encoded}})


def test_text_is_counted_in_bytes() -> None:
    with pytest.raises(ValidationError, match="at most 16 MiB"):
        FILES.validate_python({"a": {"text": "\u00fc" * (MAX_FILES_BYTES // 2 + 1)}})
