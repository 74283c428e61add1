"""What one run of a program may use."""

from __future__ import annotations

from pydantic import Field

from service.contract.base import Request
from service.contract.fields import CpuSeconds, MemoryMb, OutputMb, Processes, WallSeconds


class ProblemLimits(Request):
    """Limits of one run of the program on one test."""

    cpu_s: CpuSeconds = Field(default=2.0, description="CPU seconds, user and system, of all processes together.")
    wall_s: WallSeconds | None = Field(
        default=None,
        description="Wall seconds; only ends sleepers. Default: twice the CPU limit plus one second.",
    )
    memory_mb: MemoryMb = Field(default=256, description="Peak memory in MiB.")
    output_mb: OutputMb = Field(default=64, description="Bound for stdout and for stderr, each, in MiB.")
    processes: Processes = Field(default=64, description="Processes and threads alive at once.")


class LimitOverrides(Request):
    """Limits that replace the problem's own for one request; what is left out stays as the problem has it."""

    cpu_s: CpuSeconds | None = Field(default=None, description="CPU seconds.")
    wall_s: WallSeconds | None = Field(default=None, description="Wall seconds.")
    memory_mb: MemoryMb | None = Field(default=None, description="Peak memory in MiB.")
    output_mb: OutputMb | None = Field(default=None, description="Bound for stdout and for stderr, each, in MiB.")
    processes: Processes | None = Field(default=None, description="Processes and threads alive at once.")
