"""What is made once for the host. For cells: the warden's files, the launcher `enter`, precompiled headers, and what
else entries of the registry ask for (`sandbox.languages.base.Prebuilt`). For judges: the library that compares texts.

All of it lies in the data directory, readable to the uids of cells wherever the grader itself is installed.

A precompiled `bits/stdc++.h` turns 1.3 s of compiling most C++ programs into 0.4 s. g++ takes one only from the very
compiler and flags that made it, so each C++ language has its own. Everything lies under names that hold whatever it
was made from, so that nothing stale is ever used.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sandbox import testlib
from sandbox.config import SandboxConfig
from sandbox.errors import HostError
from sandbox.languages import HEADERS_IN_JAIL, PYTHON, Language, Prebuilt, installed, version

HEADER = "bits/stdc++.h"
JAIL_DIR = Path(__file__).parent / "jail"
ENTER_SOURCE = JAIL_DIR / "enter.c"
WARDEN_IN_JAIL = "/rkgrade"
ENTER_IN_JAIL = "/rkgrade-enter"
C_COMPILER = (
    "/usr/bin/gcc",
    "-O2",
    "-static",
    "-nostdlib",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-pie",
    "-no-pie",
)
CHECKERS_SOURCE = Path(__file__).parent / "checkers" / "native.c"
#: Any optimisation beyond these could only come from instructions that another host with this data directory may lack.
LIBRARY_COMPILER = ("/usr/bin/gcc", "-O3", "-std=c17", "-fPIC", "-shared")


def build(config: SandboxConfig) -> None:
    """Build what is missing for the languages installed here; safe with many builders. Raises HostError."""
    directory = config.prebuilt_dir
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in directory.glob(".building-*"):
            shutil.rmtree(path)  # Of a builder that died: the lock is ours.
        if not _warden(config).exists():
            with _new(_warden(config)) as new:
                shutil.copytree(JAIL_DIR, new, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
                # By the interpreter that will run them, under the names they will have.
                _run([PYTHON, "-m", "compileall", "-q", "-d", WARDEN_IN_JAIL, str(new)])
        if not _enter(config).exists():
            with _new(_enter(config).parent) as new:
                _run([*C_COMPILER, "-o", str(new / "enter"), str(ENTER_SOURCE)])
        if not library(config).exists():
            with _new(library(config).parent) as new:
                compile_library(new / library(config).name)
        if (header := testlib.header(config)) is not None and not header.shown.exists():
            with _new(header.shown) as new:
                shutil.copy(config.testlib, new / testlib.NAME)
        for language in installed(config.languages):
            if language.header and not _header(config, language).exists():
                with _new(_header(config, language)) as new:
                    _precompile(language, new)
        for made, language in _shared(config).items():
            if not _shown(config, made, language).exists():
                with _new(_shown(config, made, language)) as new:
                    _make(made, new)


def mounts(config: SandboxConfig) -> tuple[str, ...]:
    """The binds ("source:destination") that show all this in a jail.

    Raises HostError where something is not built, as after the grader was replaced under a running one.
    """
    missing = [str(path) for path in needed(config) if not path.exists()]
    if missing:
        raise HostError(f"not prebuilt: {', '.join(missing)}; has the grader been replaced? Start it anew")
    return tuple(f"{source}:{destination}" for destination, source in binds(config).items())


def needed(config: SandboxConfig) -> tuple[Path, ...]:
    """All that judges and cells need to find, built or not."""
    return (library(config), *binds(config).values())


def binds(config: SandboxConfig) -> dict[str, Path]:
    """Where each thing lies on the host, by its path in a jail, built or not."""
    warden = _warden(config)
    paths = {
        WARDEN_IN_JAIL: warden,
        "/etc/passwd": warden / "etc" / "passwd",
        "/etc/group": warden / "etc" / "group",
        ENTER_IN_JAIL: _enter(config),
    }
    if (header := testlib.header(config)) is not None:
        paths[header.in_jail] = header.shown
    for language in installed(config.languages):
        if language.header:
            paths[f"{HEADERS_IN_JAIL}/{language.id}"] = _header(config, language)
        for pattern in language.host_paths:
            paths |= {str(path): path for path in Path("/").glob(pattern.removeprefix("/"))}
    for made, language in _shared(config).items():
        paths[made.in_jail] = _shown(config, made, language)
    return paths


def library(config: SandboxConfig) -> Path:
    """What `sandbox.checkers.native` loads, built or not."""
    return config.prebuilt_dir / f"checkers-{_key(*LIBRARY_COMPILER, CHECKERS_SOURCE.read_text())}" / "native.so"


def compile_library(target: Path) -> None:
    """Raises HostError."""
    _run([*LIBRARY_COMPILER, "-o", str(target), str(CHECKERS_SOURCE)])


def _warden(config: SandboxConfig) -> Path:
    files = sorted(path for path in JAIL_DIR.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return config.prebuilt_dir / f"warden-{_key(*(path.read_text() for path in files))}"


def _enter(config: SandboxConfig) -> Path:
    return config.prebuilt_dir / f"enter-{_key(*C_COMPILER, ENTER_SOURCE.read_text())}" / "enter"


def _header(config: SandboxConfig, language: Language) -> Path:
    return config.prebuilt_dir / f"{language.id}-{_key(version(language), *language.header)}"


def _shared(config: SandboxConfig) -> dict[Prebuilt, Language]:
    """What the languages offered here have prebuilt, each with the first language that holds it."""
    found: dict[Prebuilt, Language] = {}
    for language in installed(config.languages):
        if language.prebuilt is not None:
            found.setdefault(language.prebuilt, language)
    return found


def _shown(config: SandboxConfig, made: Prebuilt, language: Language) -> Path:
    return config.prebuilt_dir / f"{made.name}-{_key(version(language), repr(made))}"


def _make(made: Prebuilt, directory: Path) -> None:
    for name, text in made.files:
        (directory / name).write_text(text)
    for command in made.commands:
        _run(list(command), directory)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _precompile(language: Language, directory: Path) -> None:
    target = directory / f"{HEADER}.gch"
    target.parent.mkdir()
    source = directory / "all.hpp"
    source.write_text(f"#include <{HEADER}>\n")
    _run([*language.header, "-x", "c++-header", "-o", str(target), str(source)])
    source.unlink()


@contextlib.contextmanager
def _new(final: Path) -> Iterator[Path]:
    """A directory to build in, which becomes the final one, readable to the jail's users, once all went well."""
    temporary = Path(tempfile.mkdtemp(prefix=".building-", dir=final.parent))
    try:
        yield temporary
        for path in (temporary, *temporary.rglob("*")):
            path.chmod(0o755)
        temporary.rename(final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _run(command: list[str], directory: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    except FileNotFoundError as error:
        raise HostError(f"{command[0]} is missing: apt-get install gcc g++") from error
    if done.returncode != 0:
        raise HostError(f"{' '.join(command)} failed: {done.stderr[:500]}")
