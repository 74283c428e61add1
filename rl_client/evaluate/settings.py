"""What an evaluation is told, and the manifest that keeps it: who goes on with a folder does so with the same settings.

What completions come from must not differ, nor what they are asked for; how they are graded may, since grades are kept
by what was graded and how; so may the number of samples, the server's address, and how much is asked for at once.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rl_client.datasets.base import DatasetError
from rl_client.datasets.outputs import Output
from rl_client.evaluate.errors import OutputTaken
from rl_client.evaluate.prompts import Template
from service.contract import Extraction, LengthUnit, Taxonomy

MANIFEST = "manifest.json"

Api = Literal["chat", "completions"]
Setting = Literal["reasoning", "tools", "agentic"]
"""Of arXiv 2605.28751: one answer; calls of Python before it; work in a terminal."""


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sampling(_Settings):
    """Completions that a server is asked for. Raises pydantic.ValidationError of what no request could hold."""

    run: str
    """A name for it all; other names have other seeds."""
    model: str
    api: Api
    setting: Setting
    template: Template
    chunk: int = Field(ge=1)
    """Samples that one request asks for."""
    temperature: float = Field(ge=0, allow_inf_nan=False)
    top_p: float = Field(ge=0, le=1)
    max_tokens: int = Field(ge=1)
    """Of one answer."""
    stop: tuple[str, ...] = ()
    extra: dict[str, Any] = {}
    """Further fields of each request, such as `top_k`."""
    calls: int = Field(default=16, ge=1)
    """Of tools, in one rollout."""

    @field_validator("*")
    @classmethod
    def _is_json(cls, value: object) -> object:
        plain = value.model_dump() if isinstance(value, BaseModel) else value
        try:
            json.dumps(plain, ensure_ascii=False, allow_nan=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text with half of a surrogate pair has no UTF-8 form") from None
        except ValueError:
            raise ValueError("a number that JSON does not have") from None
        return value


class Given(_Settings):
    """Completions that were in a file."""

    completions: str
    """The hash of the file."""


class Grading(_Settings):
    """How programs are graded."""

    extraction: Extraction = "last_fence"
    thinking: bool = False
    """Whether prompts end in `<think>`: an answer begins in thoughts then, and has no program before `</think>`."""
    taxonomy: Taxonomy = "first_failure"
    time_factor: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    length_unit: LengthUnit = "bytes"


class Manifest(_Settings):
    """What `manifest.json` holds."""

    rkgrade: str = Field(default_factory=lambda: version("rkgrade"))
    language: str
    """Of the programs; the grader's id."""
    source: Sampling | Given
    grading: Grading
    samples: int | None
    """For each problem; null where they were in a file."""

    def keep(self, folder: Path, *, is_begun: bool) -> None:
        """Write it. `is_begun`: the folder has samples already, by a manifest that must go together with this one.

        Raises OutputTaken, with every setting that differs, and DatasetError where the folder cannot be written to.
        """
        path = folder / MANIFEST
        try:
            if is_begun:
                self._compare(path)
        except OSError as error:
            raise DatasetError(path, error.strerror or str(error)) from error
        with Output(path) as output:
            output.write_line(self.model_dump_json(indent=2).encode())

    @staticmethod
    def model_in(folder: Path) -> str | None:
        """The model that a folder's samples are of; None where its manifest names none."""
        try:
            source = Manifest.model_validate_json((folder / MANIFEST).read_bytes()).source
        except (OSError, ValidationError):
            return None
        return source.model if isinstance(source, Sampling) else None

    def _compare(self, path: Path) -> None:
        try:
            there = Manifest.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise OutputTaken(f"{path}: is not there, and what it was the manifest of is: say another --out") from None
        except ValidationError:
            raise OutputTaken(f"{path}: is no manifest of an evaluation") from None
        differences = _differences(there, self)
        if differences:
            raise OutputTaken(f"{path}: holds another evaluation: {'; '.join(differences)}: say another --out")


def _differences(there: Manifest, here: Manifest) -> list[str]:
    old, new = (
        {"language": one.language} | one.source.model_dump(mode="json", exclude_defaults=False) for one in (there, here)
    )
    if old.keys() != new.keys():
        kinds = {Sampling: "sampled from a server", Given: "read from a file"}
        return [f"its completions were {kinds[type(there.source)]}"]
    return [
        f"{name} is {_shown(old[name])} there, and {_shown(new[name])} here" for name in old if old[name] != new[name]
    ]


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
