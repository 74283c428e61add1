"""Set-up of toolchains: `python -m sandbox.languages.install java,rust` (or `default`, or `all`), as root.

Fetches what the entries of the registry name (`base.Install`) with the ordinary clients: Debian packages with apt-get,
wheels with pip from lock files with hashes, npm's packages by version and hash. What is there already is left alone; a
second run costs a few file reads. The service never calls this.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from sandbox import languages
from sandbox.errors import UnknownLanguage
from sandbox.languages.base import TOOLS, Install, Language, Prebuilt

LOCKS = Path(__file__).parent / "files"
STAMP = ".rkgrade-stamp"


class CannotInstall(Exception):
    """Something could not be fetched, or is other than it was when it was chosen."""


def main(names: str) -> int:
    """Install; 0 where every language named can then run here."""
    tools = Path(TOOLS)
    tools.mkdir(parents=True, exist_ok=True)
    try:
        chosen = languages.named(names)
    except UnknownLanguage as error:
        say(str(error))
        return 2
    wanted = [entry for entry in languages.REGISTRY.values() if chosen is None or entry.id in chosen]
    try:
        # Whoever has it all need not wait for one who installs something else.
        if not is_all_there(wanted, tools):
            with (tools / ".lock").open("w") as lock:
                take(lock)
                install_packages(wanted)
                for language in wanted:
                    for part in parts(language.install, tools):
                        fill(*part)
    except CannotInstall as error:
        say(str(error))
        return 1
    lacking = {entry.id: path for entry in wanted if (path := languages.missing(entry)) is not None}
    for name, path in lacking.items():
        say(f"{name} cannot run here: {path} is missing")
    return 1 if lacking else 0


def take(lock: IO[str]) -> None:
    """Wait for whoever installs on this machine, and say so: that can take many minutes."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("waiting for another installation on this machine to end")
        fcntl.flock(lock, fcntl.LOCK_EX)


def is_all_there(wanted: Iterable[Language], tools: Path) -> bool:
    """Whether nothing is left to be done. Raises CannotInstall."""
    return not lacking_packages(wanted) and all(
        is_filled(directory, content) for language in wanted for directory, content, _ in parts(language.install, tools)
    )


def say(message: str) -> None:
    print(f"languages: {message}", file=sys.stderr)


def run(command: Sequence[str], **options: object) -> str:
    """Its output. Raises CannotInstall."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    except OSError as error:
        raise CannotInstall(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise CannotInstall(f"{' '.join(command)[:300]} failed: {done.stderr.strip()[-1000:]}")
    return str(done.stdout)


# -- Debian packages


def lacking_packages(wanted: Iterable[Language]) -> list[str]:
    """Debian packages to install; each may be several names that | separates, of which one will do."""
    # A toolchain that is there, from wherever, is left alone.
    asked = {name: None for entry in wanted if languages.missing(entry) is not None for name in entry.install.apt}
    if shutil.which("npm") is None and any(entry.install.npm for entry in wanted):
        asked["npm"] = None
    return [name for name in asked if not any(is_installed(one) for one in name.split("|"))]


def install_packages(wanted: Iterable[Language]) -> None:
    """Raises CannotInstall."""
    lacking = lacking_packages(wanted)
    if not lacking:
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-qq"], env=environment)
    found = [next((one for one in name.split("|") if has_candidate(one)), name.split("|")[0]) for name in lacking]
    say(f"installing Debian packages: {' '.join(found)}")
    run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", *found], env=environment)


def is_installed(package: str) -> bool:
    status = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True, check=False
    )
    return status.stdout == "installed"


def has_candidate(package: str) -> bool:
    policy = run(["apt-cache", "policy", package])
    return "Candidate:" in policy and "Candidate: (none)" not in policy


# -- what no Debian package has


#: A directory, what describes its content, and what puts that there.
Part = tuple[Path, str, Callable[[Path], None]]


def parts(wanted: Install, tools: Path) -> Iterator[Part]:
    """Raises CannotInstall."""
    if wanted.wheels:
        lock = LOCKS / f"{wanted.wheels}.txt"
        version = run([languages.PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
        yield tools / wanted.wheels, lock.read_text() + version, lambda new: install_wheels(lock, version, new)
    if wanted.npm:
        name, integrity, directory = wanted.npm
        yield tools / directory, name + integrity, lambda new: install_npm(name, integrity, new)
    if wanted.made is not None:
        made = wanted.made
        yield tools / made.name, repr(made) + toolchains(), lambda new: make(made, new)


def toolchains() -> str:
    """What makes archives of theirs out of date where it changes."""
    return run(["/usr/bin/java", "--version"]) if Path("/usr/bin/java").exists() else ""


def is_filled(directory: Path, content: str) -> bool:
    stamp = directory / STAMP
    return stamp.exists() and stamp.read_text() == hashlib.sha256(content.encode()).hexdigest()


def fill(directory: Path, content: str, build: Callable[[Path], None]) -> None:
    """Have a directory hold what `build` puts there, made anew where `content`, which describes it, has changed.

    Built in its place, since some tools write down where they are; without its stamp it is not whole.
    """
    if is_filled(directory, content):
        return
    say(f"making {directory}")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    build(directory)
    for path in (directory, *directory.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
    (directory / STAMP).write_text(hashlib.sha256(content.encode()).hexdigest())


def install_wheels(lock: Path, python_version: str, directory: Path) -> None:
    """For the interpreter that programs run with, whatever runs this."""
    target = ["--target", str(directory), "--python-version", python_version, "--only-binary", ":all:"]
    options = ["--quiet", "--no-deps", "--require-hashes", "--no-compile", "--disable-pip-version-check"]
    run([sys.executable, "-m", "pip", "install", *options, *target, "-r", str(lock)])
    # Programs may not write there, so that each would compile the modules anew.
    subprocess.run([languages.PYTHON, "-m", "compileall", "-q", str(directory)], check=False, capture_output=True)


def install_npm(name: str, integrity: str, directory: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(["npm", "pack", "--silent", "--pack-destination", folder, name], cwd=folder)
        (archive,) = Path(folder).glob("*.tgz")
        found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if found != integrity:
            raise CannotInstall(f"npm's {name} is not what it was: {found} instead of {integrity}")
        run(["tar", "-xzf", str(archive), "-C", str(directory), "--strip-components=1", "--no-same-owner"])


def make(made: Prebuilt, directory: Path) -> None:
    for name, text in made.files:
        (directory / name).write_text(text)
    for command in made.commands:
        run(command, cwd=directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "default"))
