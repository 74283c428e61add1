"""A Docker daemon for tests, and the one base image that ours need, without a hub for images.

Where a daemon answers already, with Compose 2, it is that one. Elsewhere a private one is started with all its state
under one directory outside the checkout, which is kept, so that layers built once are there the next time; its base
image is made by debootstrap with this host's own sources of packages and certificates. Knows nothing of what is built.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.obtaining import FETCH_S, Unobtainable, output_of

CACHE = Path(os.environ.get("RKGRADE_TEST_CACHE", "/var/cache/rkgrade-tests")) / "docker"
BASE_IMAGE = "debian:bookworm-slim"
SUITE, SUITE_WITH_COMPOSE = "bookworm", "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

PROGRAMS = {"dockerd": "docker.io", "docker": "docker.io", "iptables": "iptables", "debootstrap": "debootstrap"}
PLUGINS = ("docker-compose", "docker-buildx")

ANSWERS_WITHIN_S = 60.0
ENDS_WITHIN_S = 60.0
KEPT_LAYERS = "8GB"


@contextlib.contextmanager
def daemon() -> Iterator[dict[str, str]]:
    """The environment that clients of it need. One test run at a time has it, others wait. Raises Unobtainable."""
    if _answers({}):
        yield {}
        return
    if os.geteuid() != 0:
        raise Unobtainable("no Docker daemon with Compose 2 answers, and only root may start one")
    lacking = {package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    if lacking:
        raise Unobtainable(f"no Docker daemon with Compose 2 answers: apt-get install {' '.join(sorted(lacking))}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environment = {"DOCKER_HOST": f"unix://{CACHE}/socket", "DOCKER_CONFIG": str(CACHE / "config")}
        _fetch_plugins(CACHE / "config" / "cli-plugins")
        with _started(environment):
            if _docker("image", "inspect", BASE_IMAGE, environment=environment).returncode != 0:
                _make_base_image(CACHE / "base", environment)
            yield environment
            _docker("builder", "prune", "--force", "--keep-storage", KEPT_LAYERS, environment=environment)


def _docker(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ("docker", *arguments), capture_output=True, text=True, timeout=FETCH_S, env=os.environ | environment
    )


def _answers(environment: dict[str, str]) -> bool:
    try:
        asked = [_docker(*words, environment=environment) for words in (("info",), ("compose", "version"))]
    except FileNotFoundError:
        return False
    return all(done.returncode == 0 for done in asked)


@contextlib.contextmanager
def _started(environment: dict[str, str]) -> Iterator[None]:
    command = ["dockerd", "--host", environment["DOCKER_HOST"]]
    command += ["--data-root", f"{CACHE}/data", "--exec-root", f"{CACHE}/exec", "--pidfile", f"{CACHE}/pid"]
    (CACHE / "pid").unlink(missing_ok=True)
    with (CACHE / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        until = time.monotonic() + ANSWERS_WITHIN_S
        while not _answers(environment):
            if process.poll() is not None or time.monotonic() > until:
                said = (CACHE / "log").read_text(errors="replace")
                raise Unobtainable(f"no Docker daemon can be started here: {said[-1500:]}")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(ENDS_WITHIN_S)


def _fetch_plugins(folder: Path) -> None:
    """Compose 2 and buildx as a later Debian has them, unpacked only: this one has neither."""
    if all((folder / name).exists() for name in PLUGINS):
        return
    apt = CACHE / "apt"
    for name in ("lists/partial", "archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    sources = f"Types: deb\nURIs: {_mirror()}\nSuites: {SUITE_WITH_COMPOSE}\nComponents: main\nSigned-By: {KEYRING}\n"
    (apt / "sources.sources").write_text(sources)
    options = [
        *("-qq", "-o", f"Dir::Etc::sourcelist={apt}/sources.sources", "-o", "Dir::Etc::sourceparts=/dev/null"),
        *("-o", f"Dir::State::Lists={apt}/lists", "-o", f"Dir::Cache={apt}"),
    ]
    output_of("apt-get", *options, "update", cwd=apt)
    output_of("apt-get", *options, "download", *PLUGINS, cwd=apt)
    for package_file in apt.glob("*.deb"):
        output_of("dpkg-deb", "-x", str(package_file), str(apt / "unpacked"), cwd=apt)
    folder.mkdir(parents=True, exist_ok=True)
    for name in PLUGINS:
        shutil.copy(apt / "unpacked/usr/libexec/docker/cli-plugins" / name, folder)
    shutil.rmtree(apt)


def _make_base_image(root: Path, environment: dict[str, str]) -> None:
    shutil.rmtree(root, ignore_errors=True)
    output_of("debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, str(root), _mirror(), cwd=CACHE)
    own = Path("/usr/local/share/ca-certificates")
    shutil.copytree(own, root / str(own).lstrip("/"), dirs_exist_ok=True)
    output_of("chroot", str(root), "update-ca-certificates", cwd=CACHE)
    (root / "etc/pip.conf").write_text(f"[global]\ncert = {CERTIFICATES}\n{_indexes()}")
    lines = (f"deb [signed-by={KEYRING}] {uri} {suite} main\n" for uri, suite in _sources())
    (root / "etc/apt/sources.list").write_text("".join(lines))
    for leftover in (*root.glob("var/cache/apt/archives/*.deb"), *root.glob("var/lib/apt/lists/*_*")):
        leftover.unlink()
    archive = CACHE / "base.tar"
    output_of("tar", "-C", str(root), "--numeric-owner", "-cf", str(archive), ".", cwd=CACHE)
    made = _docker("import", "--change", 'CMD ["bash"]', str(archive), BASE_IMAGE, environment=environment)
    if made.returncode != 0:
        raise Unobtainable(f"docker import: {made.stderr}")
    archive.unlink()
    shutil.rmtree(root)


def _sources() -> list[tuple[str, str]]:
    """Where this host has Debian's packages from: addresses and suites. Raises Unobtainable."""
    asked = ("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages")
    found: list[tuple[str, str]] = []
    for label in ("Debian", "Debian-Security"):
        lines = output_of(*asked, f"Label: {label}", "Component: main", cwd=Path("/")).splitlines()
        found += [(uri, suite) for uri, suite in (line.split() for line in lines) if suite.startswith(SUITE)]
    return sorted(set(found))


def _mirror() -> str:
    for uri, suite in _sources():
        if suite == SUITE:
            return uri
    raise Unobtainable(f"no source of Debian's {SUITE} is known here: apt-get update, on Debian")


def _indexes() -> str:
    """This host's own index of Python packages, where it has one that can be reached from a container."""
    settings = subprocess.run(("pip3", "config", "list"), capture_output=True, text=True, check=False).stdout
    found = re.findall(r"^(?:global|:env:)\.(index-url|trusted-host)='(?!file:)(.*)'$", settings, re.M)
    return "".join(f"{name} = {value}\n" for name, value in dict(found).items())
