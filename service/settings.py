"""Every option of the server, once: environment variables `RKGRADE_*`, and flags of the same names
(`service.cli`).

Knows nothing of how options are used, and imports nothing of the server.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from sandbox import languages
from sandbox.config import TESTLIB
from sandbox.errors import UnknownLanguage

_PREFIX = "RKGRADE_"

#: Variables of that prefix that are no settings: where tests and benchmarks find what is no part of the checkout.
_OTHERS = frozenset({"RKGRADE_SHARED"})


def usable_cores() -> tuple[int, ...]:
    """The cores this process may run on (container and taskset limits included), lowest first."""
    return tuple(sorted(os.sched_getaffinity(0)))


def _default_data_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/rkgrade")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "rkgrade"


def _names(names: str) -> frozenset[str] | None:
    try:
        return languages.named(names)
    except UnknownLanguage as error:
        raise ValueError(str(error)) from None


def _factors(value: object) -> object:
    """A mapping from "python=3,java=1.5", with ids for aliases."""
    if not isinstance(value, str):
        return value
    factors: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in value.split(","))):
        name, _, factor = item.partition("=")
        try:
            factors[languages.resolve(name.strip()).id] = factor.strip()
        except UnknownLanguage as error:
            raise ValueError(str(error)) from None
    return factors


TimeFactors = Annotated[
    dict[str, Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)]], NoDecode, BeforeValidator(_factors)
]


class Settings(BaseSettings):
    """Options of `rkgrade serve`; an unknown or malformed one is refused at start-up."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    data_dir: Path = Field(default_factory=_default_data_dir, description="stored problems and compiled programs")
    workers: int = Field(
        default_factory=lambda: len(usable_cores()),
        ge=1,
        description="judges at work, each on a core of its own; at most the usable cores",
    )
    queue_size: int = Field(256, ge=1, description="grades that may wait before new ones get 429")
    body_limit_mb: int = Field(256, ge=1, description="largest request body, after decompression, in MiB")
    problem_cache_mb: int = Field(512, ge=1, description="loaded problems each worker keeps, in MiB")
    compile_cache_mb: int = Field(2048, ge=1, description="compiled programs kept on disk, in MiB")
    languages: str = Field("all", description="languages offered: `all` that are installed, or `default`, or names")
    time_factors: TimeFactors = Field(
        default_factory=dict, description="what multiplies the time limits of languages: `python=3,java=1.5`"
    )
    checker_cpu_s: float = Field(
        30.0, gt=0, le=300, description="CPU seconds for one run of a checker that is a program"
    )
    testlib: Path = Field(
        default_factory=lambda: TESTLIB,
        description="the header testlib.h, which set-up fetches, for checkers and interactors written with it",
    )
    drain_timeout_s: float = Field(30.0, ge=0, description="time SIGTERM gives to work already accepted")
    insecure_no_cgroup: bool = Field(
        False, description="run without cgroups: limits can be evaded, and every result says so"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level logged")
    log_format: Literal["console", "json"] = Field("console", description="lines for people or for machines")
    access_log: bool = Field(False, description="log every request with its status and duration")

    @model_validator(mode="before")
    @classmethod
    def _known_variables(cls, given: object) -> object:
        # pydantic-settings asks for the variables that it knows, and never sees a misspelt one.
        known = {f"{_PREFIX}{name.upper()}" for name in cls.model_fields}
        for name in sorted({name.upper() for name in os.environ} - known - _OTHERS):
            if name.startswith(_PREFIX):
                near = difflib.get_close_matches(name, known, n=1, cutoff=0)
                raise ValueError(f"{name} is no setting; the nearest is {near[0]}")
        return given

    @field_validator("languages")
    @classmethod
    def _known_languages(cls, names: str) -> str:
        _names(names)
        return names

    @model_validator(mode="after")
    def _a_core_for_each_worker(self) -> Settings:
        # Two programs on one core make each other's limits a matter of luck.
        cores = len(usable_cores())
        if self.workers > cores:
            raise ValueError(f"{self.workers} workers need as many cores, but this process may use {cores}")
        return self

    @property
    def offered_languages(self) -> frozenset[str] | None:
        """Ids of the languages offered; None for all."""
        return _names(self.languages)

    @property
    def problems_dir(self) -> Path:
        return self.data_dir / "problems"

    @property
    def body_limit_bytes(self) -> int:
        return self.body_limit_mb * 2**20
