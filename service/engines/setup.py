"""All that a worker is told at its start, and its way there: a frame.

Imports no web framework: workers read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sandbox.config import SandboxConfig
from service.contract import GraderInfo
from service.engines.frames import Frame


@dataclass(frozen=True, slots=True)
class Sharing:
    """What workers share of what they have found out."""

    verdicts_bytes: int | None
    """What results that are kept may take; None where none are."""
    verdicts_s: int
    """How long they are kept."""
    redis_url: str | None = field(repr=False)
    """Where they are kept; None for the data directory. There, too, is the secret of compiled programs."""
    programs_secret: str | None = field(repr=False)
    """That secret in hexadecimal digits, where it was given; None where there is none, or where Redis has it."""
    programs_bytes: int | None
    """What compiled programs may take in the store that hosts share; None for as much as there is."""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    slot: int
    core: int
    config: SandboxConfig
    problems_dir: Path
    store_url: str | None
    """Of the store that is shared; None where `problems_dir` is it."""
    problem_store_bytes: int | None
    problem_cache_bytes: int
    graders: Mapping[str, GraderInfo]
    """By language id: what results say of the grader."""
    sharing: Sharing

    def frame(self) -> Frame:
        config = asdict(self.config)
        fields = {
            "slot": self.slot,
            "core": self.core,
            "config": config
            | {
                "data_dir": str(self.config.data_dir),
                "testlib": str(self.config.testlib),
                "languages": None if self.config.languages is None else sorted(self.config.languages),
            },
            "problems_dir": str(self.problems_dir),
            "store_url": self.store_url,
            "problem_store_bytes": self.problem_store_bytes,
            "problem_cache_bytes": self.problem_cache_bytes,
            "graders": {name: info.model_dump() for name, info in self.graders.items()},
            "sharing": asdict(self.sharing),
        }
        return Frame("setup", fields)

    @classmethod
    def of(cls, frame: Frame) -> WorkerSetup:
        fields = frame.fields
        config = fields["config"]
        return cls(
            slot=fields["slot"],
            core=fields["core"],
            config=SandboxConfig(
                **config
                | {
                    "data_dir": Path(config["data_dir"]),
                    "testlib": Path(config["testlib"]),
                    "languages": None if config["languages"] is None else frozenset(config["languages"]),
                }
            ),
            problems_dir=Path(fields["problems_dir"]),
            store_url=fields["store_url"],
            problem_store_bytes=fields["problem_store_bytes"],
            problem_cache_bytes=fields["problem_cache_bytes"],
            graders={name: GraderInfo(**info) for name, info in fields["graders"].items()},
            sharing=Sharing(**fields["sharing"]),
        )
