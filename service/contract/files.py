"""Files that go along with programs: paths that lead nowhere else, and contents as text or as base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from service.contract.base import Request, Response
from service.contract.fields import Text

MAX_FILES: Final = 128
MAX_FILES_BYTES: Final = 16 * 2**20
"""Of all files of a request together."""
MAX_FETCHED: Final = 32
"""Of so many any paths fit into one message to a cell."""
MAX_PATH_BYTES: Final = 255
MAX_PATH_LEVELS: Final = 16


def path_mistake(path: str) -> str | None:
    """Why that is no path of a file below a working directory; None where it is one."""
    if not path:
        return "A path cannot be empty"
    if "\0" in path:
        return "A path cannot hold a NUL"
    if any("\ud800" <= letter <= "\udfff" for letter in path):
        return "A path cannot hold half of a surrogate pair"
    if path.startswith("/"):
        return "A path is relative to the working directory, and does not begin with /"
    parts = path.split("/")
    if ".." in parts or "." in parts or "" in parts:
        return "No part of a path may be empty, . or .."
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"A path has at most {MAX_PATH_BYTES} bytes"
    if len(parts) > MAX_PATH_LEVELS:
        return f"A path leads through at most {MAX_PATH_LEVELS - 1} folders"
    return None


def _relative(path: str) -> str:
    if (mistake := path_mistake(path)) is not None:
        raise PydanticCustomError("path", "{mistake}", {"mistake": mistake})
    return path


FilePath = Annotated[Text, AfterValidator(_relative)]
"""Of a file in the program's working directory, such as `data/in.csv`."""

Fetch = Annotated[tuple[FilePath, ...], Field(max_length=MAX_FETCHED, fail_fast=True)]
"""Files that are asked for."""


def _decodable(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PydanticCustomError("base64", "Not base64: {why}", {"why": str(error)}) from None
    return value


Base64 = Annotated[str, AfterValidator(_decodable)]
"""Any bytes (RFC 4648)."""


class FileContent(Request):
    """What a file holds: exactly one of `text` and `base64`."""

    text: Text | None = Field(default=None, description="As UTF-8.")
    base64: Base64 | None = Field(default=None, validate_default=True, description="Any bytes, in base64 (RFC 4648).")

    @field_validator("base64")
    @classmethod
    def _exactly_one(cls, value: str | None, info: ValidationInfo) -> str | None:
        if "text" in info.data and (info.data["text"] is None) == (value is None):
            raise PydanticCustomError("text_xor_base64", "Give exactly one of `text` and `base64`, as a string")
        return value

    @property
    def data(self) -> bytes:
        return self.text.encode() if self.text is not None else base64.b64decode(self.base64 or "")

    @property
    def size_bytes(self) -> int:
        """Of `data`."""
        if self.text is not None:
            return len(self.data)
        encoded = self.base64 or ""
        return 3 * len(encoded) // 4 - encoded[-2:].count("=")


class FileResult(Response):
    """What a file holds: `text` where it is UTF-8, else `base64`."""

    text: str | None = None
    base64: str | None = None

    @classmethod
    def of(cls, data: bytes) -> FileResult:
        try:
            return cls(text=data.decode())
        except UnicodeDecodeError:
            return cls(base64=base64.b64encode(data).decode())


def consistent(files: Mapping[str, FileContent]) -> Mapping[str, FileContent]:
    if (twice := both_file_and_folder(files)) is not None:
        raise PydanticCustomError("file_and_folder", "{path} cannot be both a file and a folder", {"path": repr(twice)})
    if sum(content.size_bytes for content in files.values()) > MAX_FILES_BYTES:
        most = MAX_FILES_BYTES // 2**20
        raise PydanticCustomError("files_bytes", "Files may hold at most {most} MiB together", {"most": most})
    return files


def both_file_and_folder(paths: Iterable[str]) -> str | None:
    """A path that is a file and that another path leads through; None where there is none."""
    known = set(paths)
    for path in known:
        parts = path.split("/")
        for count in range(1, len(parts)):
            if (folder := "/".join(parts[:count])) in known:
                return folder
    return None


Files = Annotated[dict[FilePath, FileContent], Field(max_length=MAX_FILES, fail_fast=True), AfterValidator(consistent)]
