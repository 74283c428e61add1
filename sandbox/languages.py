"""The languages: one entry each in `REGISTRY`. Adding one touches nothing else.

Knows how a source becomes something to run, and nothing of cells or of how runs are judged.
"""

from __future__ import annotations

import enum
import functools
import shutil
import subprocess
from dataclasses import dataclass
from types import MappingProxyType

from sandbox.errors import UnknownLanguage


class Start(enum.StrEnum):
    """How a program is started for each test."""

    EXEC = "exec"
    ZYGOTE = "zygote"
    """Forked from the warden's own Python interpreter."""


@dataclass(frozen=True, slots=True)
class Language:
    id: str
    name: str
    source_name: str
    """The file the program's text is written to, in /prog."""
    run: tuple[str, ...]
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


@dataclass(frozen=True, slots=True)
class InstalledLanguage:
    id: str
    name: str
    version: str
    aliases: tuple[str, ...]


PYTHON = "/usr/bin/python3"
PYTHON_SUM = "print(sum(map(int, input().split())))\n"
C_SUM = '#include <stdio.h>\nint main(void) { long a, b; scanf("%ld %ld", &a, &b); printf("%ld\\n", a + b); }\n'
CPP_SUM = "#include <bits/stdc++.h>\nint main() { long a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }\n"

#: Where cells find the precompiled headers, a directory for each language id.
HEADERS_IN_JAIL = "/rkgrade-headers"

DIAGNOSTICS = ("-fdiagnostics-color=never", "-fmax-errors=20")


def _cpp(language_id: str, name: str, standard: str, aliases: tuple[str, ...]) -> Language:
    # GNU dialects, as on the sites the data sets come from: their programs use its extensions. Statically linked:
    # starting a dynamic program costs as much again as running a trivial one.
    flags = ("-O2", f"-std={standard}", "-static", *DIAGNOSTICS)
    return Language(
        id=language_id,
        name=name,
        source_name="main.cpp",
        compile=(
            "/usr/bin/g++",
            *flags,
            "-I",
            f"{HEADERS_IN_JAIL}/{language_id}",
            "-o",
            "/box/main",
            "/prog/main.cpp",
        ),
        run=("/prog/main",),
        version_command=("/usr/bin/g++", "--version"),
        aliases=aliases,
        header=("/usr/bin/g++", *flags),
        self_test=CPP_SUM,
    )


_LANGUAGES = (
    Language(
        id="python",
        name="Python 3",
        source_name="main.py",
        run=(PYTHON, "/prog/main.py"),
        version_command=(PYTHON, "--version"),
        aliases=("py", "py3", "python3"),
        start=Start.ZYGOTE,
        checks_python=True,
        self_test=PYTHON_SUM,
    ),
    Language(
        id="python-exec",
        name="Python 3, a fresh interpreter for each test",
        source_name="main.py",
        run=(PYTHON, "/prog/main.py"),
        version_command=(PYTHON, "--version"),
        checks_python=True,
        self_test=PYTHON_SUM,
    ),
    Language(
        id="c",
        name="C17",
        source_name="main.c",
        compile=(
            "/usr/bin/gcc",
            "-O2",
            "-std=gnu17",
            "-static",
            *DIAGNOSTICS,
            "-o",
            "/box/main",
            "/prog/main.c",
            "-lm",
        ),
        run=("/prog/main",),
        version_command=("/usr/bin/gcc", "--version"),
        aliases=("c17", "gcc"),
        self_test=C_SUM,
    ),
    _cpp("cpp", "C++17", "gnu++17", ("c++", "c++17", "cpp17", "g++", "cxx", "cc")),
    _cpp("cpp20", "C++20", "gnu++20", ("c++20",)),
)

REGISTRY = MappingProxyType({language.id: language for language in _LANGUAGES})
_BY_NAME = MappingProxyType({name: entry for entry in _LANGUAGES for name in (entry.id, *entry.aliases)})


def resolve(name: str) -> Language:
    """The language of that id or alias, whatever its case. Raises UnknownLanguage."""
    language = _BY_NAME.get(name.lower())
    if language is None:
        raise UnknownLanguage(f"unknown language {name!r}; known are {', '.join(sorted(REGISTRY))}")
    return language


@functools.cache
def version(language: Language) -> str:
    """The toolchain's own word on its version. Raises UnknownLanguage where it is not installed."""
    tool = language.version_command[0]
    if shutil.which(tool) is None:
        raise UnknownLanguage(f"{language.name} cannot run here: {tool} is not installed")
    answer = subprocess.run(
        language.version_command, capture_output=True, text=True, timeout=30, check=True, env={"LANG": "C"}
    )
    return (answer.stdout or answer.stderr).splitlines()[0].strip()


def installed() -> tuple[Language, ...]:
    """The languages whose toolchain is on this host."""
    found = []
    for language in REGISTRY.values():
        try:
            version(language)
        except UnknownLanguage:
            continue
        found.append(language)
    return tuple(found)


def available() -> tuple[InstalledLanguage, ...]:
    """What can be run here, for people and for `GET /languages`."""
    return tuple(InstalledLanguage(entry.id, entry.name, version(entry), entry.aliases) for entry in installed())
