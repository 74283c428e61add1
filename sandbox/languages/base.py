"""What an entry of the registry says of its language: how a source becomes something to run, and what that takes.

Knows nothing of cells, of how runs are judged, or of any one language.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

#: Where set-up puts what no Debian package has. Below /usr, so that cells, which see all of /usr, find it.
TOOLS = "/usr/local/lib/rkgrade"

#: Where cells find what is made once for a language (`Prebuilt`), a directory for each.
PREBUILT_IN_JAIL = "/rkgrade-prebuilt"

#: The most that a stack can be, whatever the memory limit: the jail's own hard limit (see `sandbox.nsjail`).
MOST_STACK_BYTES = 2**30


class Start(enum.StrEnum):
    """How a program is started for each test."""

    EXEC = "exec"
    ZYGOTE = "zygote"
    """Forked from the warden's own Python interpreter."""


@dataclass(frozen=True, slots=True)
class Prebuilt:
    """Something made once and shown in cells, read-only: for a data directory, at `PREBUILT_IN_JAIL`/<name>.

    Languages that share it hold equal values. It is made anew wherever these fields, or the version of the first
    language that holds it, change.
    """

    name: str
    files: tuple[tuple[str, str], ...]
    """Names and texts, written into the new directory first."""
    commands: tuple[tuple[str, ...], ...]
    """Run in the new directory, one after the other."""

    @property
    def in_jail(self) -> str:
        return f"{PREBUILT_IN_JAIL}/{self.name}"


@dataclass(frozen=True, slots=True)
class Install:
    """What set-up fetches for a language (`sandbox.languages.install`)."""

    apt: tuple[str, ...] = ()
    """Debian packages."""
    wheels: str = ""
    """A lock file of requirements/, which pip unpacks into `TOOLS`/<name>."""
    npm: tuple[str, ...] = ()
    """A package of npm's as "name@version", its integrity hash, and the directory of `TOOLS` to unpack it into."""
    made: Prebuilt | None = None
    """What set-up makes once of all that, in `TOOLS`/<name>: too slow to be made for every data directory."""


@dataclass(frozen=True, slots=True)
class Language:
    id: str
    name: str
    source_name: str
    """The file the program's text is written to, in /prog."""
    run: tuple[str, ...]
    """The command of a test; `{memory_mb}` and the like stand for its limits: see `command`."""
    version_command: tuple[str, ...]
    """Its first line of output, with `compile`, names the toolchain in the compile cache."""
    compile: tuple[str, ...] = ()
    """Reads /prog/<source_name>, leaves /box/<artefact>; empty where nothing is built."""
    artefact: str = "main"
    aliases: tuple[str, ...] = ()
    start: Start = Start.EXEC
    checks_python: bool = False
    """The source is compiled by the cell's own Python before the first test; a failure is a compile error."""
    header: tuple[str, ...] = ()
    """Flags under which a precompiled bits/stdc++.h is built for this language; empty for none."""
    self_test: str = ""
    """A program that reads two integers and prints their sum, for the readiness probe."""
    compile_time_factor: float = 1.0
    """How many times what compiling usually may take, in CPU time, this compiler may."""
    extra_processes: int = 0
    """Threads and processes that the language's own runtime and compiler need beside the program's."""
    heap_overhead_mb: int = 0
    """What the runtime needs of the memory limit beside the heap, in MiB."""
    reserves_address_space: bool = False
    """The runtime maps far more than it uses, so that a limit on address space would end it at once."""
    needs: tuple[str, ...] = ()
    """Files without which it cannot run here, beside the program of `version_command`."""
    host_paths: tuple[str, ...] = ()
    """Patterns of paths outside /usr that the toolchain reads, shown in cells; nothing there may be a secret."""
    prebuilt: Prebuilt | None = None
    install: Install = Install()
    is_default: bool = False
    """Whether set-up installs it unless told otherwise."""

    def command(self, memory_bytes: int) -> tuple[str, ...]:
        """The command of a test under such a memory limit.

        `{memory_mb}` is the limit; `{heap_mb}` what it leaves beside the runtime's overhead, at least half of it;
        `{stack_kb}` the stack, which may take all of it; `{most_stack_kb}` how much of that a runtime may use that
        counts its frames itself.
        """
        memory_mb = memory_bytes >> 20
        stack_kb = min(memory_bytes, MOST_STACK_BYTES) >> 10
        values = {
            "{memory_mb}": str(memory_mb),
            "{heap_mb}": str(max(memory_mb - self.heap_overhead_mb, memory_mb // 2, 1)),
            "{stack_kb}": str(stack_kb),
            "{most_stack_kb}": str(stack_kb - max(stack_kb // 16, 256)),
        }
        return tuple(_fill(word, values) for word in self.run)


@dataclass(frozen=True, slots=True)
class InstalledLanguage:
    id: str
    name: str
    version: str
    aliases: tuple[str, ...]


def _fill(word: str, values: dict[str, str]) -> str:
    if "{" in word:
        for name, value in values.items():
            word = word.replace(name, value)
    return word


def shell(script: str) -> tuple[str, ...]:
    """A command of several steps, each of which must go well."""
    return ("/bin/sh", "-ec", script)


def checked(check: str, source_name: str) -> tuple[str, ...]:
    """The `compile` of a language that is interpreted: a look at the syntax, then the source itself."""
    return shell(f"{check} /prog/{source_name} >&2; cp /prog/{source_name} /box/{source_name}")
