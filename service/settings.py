"""Every option of the server, once: environment variables `RKGRADE_*`, and flags of the same names
(`service.cli`).

Knows nothing of how options are used, and imports nothing of the server.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import psutil
from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from sandbox import languages
from sandbox.config import TESTLIB, UID_BASE
from sandbox.errors import UnknownLanguage

_PREFIX = "RKGRADE_"

#: Variables of that prefix that are no settings: where tests and benchmarks find what is no part of the
#: checkout, what clients and trainers' adapters read, and what the compose file is filled in with.
OTHERS = frozenset(
    {
        "RKGRADE_SHARED", "RKGRADE_TEST_CACHE",
        "RKGRADE_TOKEN", "RKGRADE_URL", "RKGRADE_LABEL", "RKGRADE_PATIENCE_S", "RKGRADE_UNSCORED",
        "RKGRADE_SETTING", "RKGRADE_LIMITS", "RKGRADE_ATTEMPTS", "RKGRADE_ROLE",
        "RKGRADE_PUBLISHED_PORT", "RKGRADE_WORKER_MEMORY", "RKGRADE_WORKER_1_CORES", "RKGRADE_WORKER_2_CORES",
    }
)  # fmt: skip


def usable_cores() -> tuple[int, ...]:
    """The cores this process may run on (container and taskset limits included), lowest first."""
    return tuple(sorted(os.sched_getaffinity(0)))


def usable_memory_bytes() -> int:
    """What programs may use together unless told otherwise: nine tenths of this machine's, or of this container's."""
    memory = psutil.virtual_memory().total
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            memory = min(memory, int(Path(file).read_text()))
    return memory * 9 // 10


def without_password(url: str) -> str:
    """Where something is, without user and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


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
    tokens_file: Path | None = Field(
        None,
        description="file with a line `name token` for each client; without one whoever reaches the port may grade. Of "
        "`rkgrade worker`: for each that may read its metrics",
    )
    insecure_no_token: bool = Field(False, description="listen beyond this machine without asking for a token")
    metrics_without_token: bool = Field(False, description="let anybody read `/metrics`, even where tokens are set")
    metrics_host: str = Field("127.0.0.1", description="address of `metrics_port`")
    metrics_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="port on which `rkgrade worker` tells of itself: `/metrics`, `/health/live`, `/health/ready`; "
        "0 takes a free one",
    )
    allowed_hosts: str | None = Field(
        None, description="names the service is called by, where no token is asked for: `api,grader.example`"
    )
    data_dir: Path = Field(default_factory=_default_data_dir, description="stored problems and compiled programs")
    workers: int = Field(
        default_factory=lambda: len(usable_cores()),
        ge=1,
        description="judges at work, each on a core of its own; at most the usable cores",
    )
    redis_url: SecretStr | None = Field(
        None, description="Redis to queue grades on, for `rkgrade worker`s to take: `redis://:password@host:6379/0`"
    )
    store_url: str | None = Field(
        None,
        description="where problems, and compiled programs for other hosts, are stored: `file:///path` or "
        "`s3://bucket/path`; by default the data directory",
    )
    queue_size: int = Field(256, ge=1, description="grades that may wait before new ones get 429")
    body_limit_mb: int = Field(256, ge=1, description="largest request body, after decompression, in MiB")
    memory_mb: int | None = Field(
        None, ge=64, description="what running programs may use together, in MiB; by default nine tenths of the memory"
    )
    problem_store_mb: int | None = Field(
        None,
        ge=1,
        description="stored problems kept on disk, in MiB; without it as many as the disk takes, 4096 of a store "
        "elsewhere",
    )
    problem_cache_mb: int = Field(512, ge=1, description="loaded problems each worker keeps, in MiB")
    compile_cache_mb: int = Field(2048, ge=1, description="compiled programs kept on disk, in MiB")
    store_programs_mb: int = Field(
        8192,
        ge=0,
        description="compiled programs kept in `store_url`, in MiB, of which those written first make room; 0 for as "
        "many as it takes",
    )
    store_secret_file: Path | None = Field(
        None,
        description="file with a secret that all hosts of `store_url` have, by which they know compiled programs in it "
        "for theirs; without one Redis keeps it",
    )
    verdict_cache: bool = Field(
        True, description="answer with the result of an earlier grade of the same program where another run would agree"
    )
    verdict_cache_mb: int = Field(64, ge=1, description="results kept for that, in MiB, here or on Redis")
    verdict_cache_s: int = Field(86_400, ge=1, description="seconds that they are kept")
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
    job_keep_s: int = Field(
        3600, ge=1, description="seconds that results of jobs, and of grades with a key, are kept to be asked for"
    )
    sessions: int = Field(
        16,
        ge=0,
        le=128,
        description="sessions that may be open at once, on each host with workers; 0 for none",
    )
    session_lifetime_s: float = Field(21600.0, gt=0, description="seconds after which a session is closed, used or not")
    drain_timeout_s: float = Field(30.0, ge=0, description="time SIGTERM gives to work already accepted")
    uid_base: int = Field(
        UID_BASE,
        ge=1000,
        le=2**32 - 2**16,
        description="first of the user ids that cells use, 256 each for workers and sessions, none of them anybody's",
    )
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
        for name in sorted({name.upper() for name in os.environ} - known - OTHERS):
            if name.startswith(_PREFIX):
                near = difflib.get_close_matches(name, known, n=1, cutoff=0)
                raise ValueError(f"{name} is no setting; the nearest is {near[0]}")
        return given

    @field_validator("languages")
    @classmethod
    def _known_languages(cls, names: str) -> str:
        _names(names)
        return names

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
            # What was given may hold a password.
            raise ValueError("a URL of Redis begins with redis://, rediss:// or unix://")
        return url

    @field_validator("store_url")
    @classmethod
    def _store(cls, url: str | None) -> str | None:
        if url is not None:
            from service.stores.remote import check_url

            check_url(url)
        return url

    @field_validator("store_secret_file")
    @classmethod
    def _secret(cls, path: Path | None) -> Path | None:
        if path is not None:
            from service.stores.secret import read_secret

            read_secret(path)
        return path

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
    def hosts(self) -> frozenset[str]:
        """Names that a Host header may have, beside addresses."""
        named = (self.allowed_hosts or "").split(",")
        return frozenset({"localhost", self.host, *filter(None, map(str.strip, named))})

    @property
    def problems_dir(self) -> Path:
        """Stored problems, or what of a shared store is kept here."""
        return self.data_dir / "problems"

    @property
    def body_limit_bytes(self) -> int:
        return self.body_limit_mb * 2**20

    @property
    def problem_store_bytes(self) -> int | None:
        return None if self.problem_store_mb is None else self.problem_store_mb * 2**20
