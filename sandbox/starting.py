"""How a program of a language is started under given limits: one place for every run of a program's.

Knows the registry and what a run is asked for; nothing of cells, tests or verdicts.
"""

from __future__ import annotations

from dataclasses import replace

from sandbox.languages import Language, Start
from sandbox.problem import Limits
from sandbox.run import Action, RunRequest


def program_request(
    language: Language, stdin_fd: int, limits: Limits, arguments: tuple[str, ...] = (), *, once: bool = False
) -> RunRequest:
    """The request that runs the language's program, loaded before; `dataclasses.replace` adds what else a run needs.

    Threads of the language's own runtime are allowed beside the program's processes. `once`: no other run needs it.
    """
    zygote = Action.ONCE if once else Action.PYTHON
    return RunRequest(
        zygote if language.start is Start.ZYGOTE else Action.EXEC,
        stdin_fd,
        replace(limits, processes=limits.processes + language.extra_processes),
        (*language.command(limits.memory_bytes), *arguments),
        limits_address_space=not language.reserves_address_space,
    )


def scaled(limits: Limits, factor: float) -> Limits:
    """Limits whose times are multiplied; a wall limit that was not set follows the CPU limit by itself."""
    return replace(
        limits, cpu_s=limits.cpu_s * factor, wall_s=None if limits.wall_s is None else limits.wall_s * factor
    )


def compiler_limits(language: Language, limits: Limits) -> Limits:
    """The limits of compiling, `limits` being what does for most languages."""
    cpu_s, wall_s = limits.cpu_s * language.compile_time_factor, limits.effective_wall_s
    return replace(
        limits,
        cpu_s=cpu_s,
        wall_s=wall_s if language.compile_time_factor == 1 else max(wall_s, 2 * cpu_s),
        processes=limits.processes + language.extra_processes,
    )
