"""The set-up scripts: what they say where something is missing, and what the lock files may hold."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("server", "dev")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.fixture
def checkout() -> Iterator[Path]:
    """The scripts in a folder that anybody may look into, with nothing set up yet."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "scripts", folder / "scripts")
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def bare_path(checkout: Path) -> str:
    """A PATH with what bash scripts need and no compiler."""
    programs = checkout / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "basename"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    programs.chmod(0o755)
    return str(programs)


@pytest.mark.jail
@pytest.mark.parametrize(
    ("script", "packages"), [("run", "gcc g++"), ("test", "gcc g++ prometheus redis-server chromium")]
)
def test_without_root_and_compilers_all_that_is_missing_is_said_at_once(
    checkout: Path, bare_path: str, script: str, packages: str
) -> None:
    done = subprocess.run(
        [*NOBODY, "env", f"PATH={bare_path}", checkout / "scripts" / script],
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert f"{script}: missing packages: install them with: apt-get install {packages}\n" in done.stderr
    assert f"{script}: missing rights: cells need root" in done.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.jail
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the machine that QEMU is for is an x86-64")
def test_without_root_and_qemu_it_is_said_what_tests_go_without(checkout: Path, bare_path: str) -> None:
    uname = shutil.which("uname")
    assert uname is not None
    (Path(bare_path) / "uname").symlink_to(uname)
    script = f"source {checkout}/scripts/lib.sh; ensure_vm"
    done = subprocess.run(
        [*NOBODY, "env", f"PATH={bare_path}", "bash", "-c", script], capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "no QEMU for tests with cgroup v2: install it with: apt-get install qemu-system-x86 cpio" in done.stderr


@pytest.mark.parametrize("there", [True, False])
def test_real_problems_that_are_missing_are_told_of_with_the_way_to_point_at_them(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "corpus").mkdir()
    done = subprocess.run(
        ["bash", "-c", "set -euo pipefail; source scripts/lib.sh; tell_of_corpus", "test"],
        cwd=ROOT,
        env={**os.environ, "RKGRADE_SHARED": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert (f"test: no real problems in {tmp_path}/corpus" in done.stderr) is not there
    assert ("RKGRADE_SHARED" in done.stderr) is not there


@pytest.mark.parametrize(("ci", "outcome"), [("", "skipped"), ("true", "error")])
def test_without_real_problems_tests_on_them_are_skipped_but_not_where_ci_decides(
    tmp_path: Path, ci: str, outcome: str
) -> None:
    tests = ("tests/rl_client/datasets/test_kattis.py::test_real_packages", "tests/corpus/test_corpus.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "hindex", *tests],
        cwd=ROOT,
        env={**os.environ, "RKGRADE_SHARED": str(tmp_path), "CI": ci},
        capture_output=True,
        text=True,
        timeout=120,
    )
    *_, summary = done.stdout.splitlines()
    assert [word for word in ("passed", "skipped", "failed", "error") if word in summary] == [outcome], done.stdout
    assert f"no real problems in {tmp_path}/corpus: point RKGRADE_SHARED at" in done.stdout


def releases(lock: str) -> dict[str, str]:
    """Each release in a lock with the text of its entry."""
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements" / f"{lock}.txt").read_text())
    return {entry.partition(" ")[0]: entry.strip() for entry in entries}


@pytest.mark.parametrize("lock", [*LOCKS, "testlib", "helm"])
def test_locks_name_releases_and_hashes_and_nothing_else(lock: str) -> None:
    line = re.compile(r"[a-z0-9-]+==[\w.+!]+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    lines = (ROOT / "requirements" / f"{lock}.txt").read_text().splitlines()
    assert [text for text in lines if not line.fullmatch(text)] == []
    assert [name for name, entry in releases(lock).items() if "--hash" not in entry] == []


def test_the_dev_lock_holds_the_server_lock() -> None:
    server, dev = releases("server"), releases("dev")
    assert {name: dev.get(name) for name in server} == {**server}


@pytest.mark.parametrize(("lock", "extras"), [("server", ("cli", "server")), ("dev", ("cli", "server", "dev"))])
def test_locks_hold_what_pyproject_asks_for(lock: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    names = {re.match(r"[\w-]+", one)[0].lower().replace("_", "-") for one in asked}  # type: ignore[index]
    locked = {name.partition("==")[0] for name in releases(lock)}
    assert names - locked - {"rkgrade"} == set()
    assert "setuptools" in locked


def test_the_header_of_testlib_is_fetched_once_and_only_as_it_is_expected() -> None:
    """The real set-up of this checkout: `scripts/test` fetched the header, and a second time nothing is fetched."""
    script = 'set -euo pipefail; source scripts/lib.sh; ensure_testlib; echo "$testlib"; is_testlib "$testlib"'
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()) == Path(sys.prefix) / "share" / "rkgrade" / "testlib.h"


def test_helm_is_fetched_once_and_only_as_it_is_expected() -> None:
    """The real set-up of this checkout, as above."""
    script = 'set -euo pipefail; source scripts/lib.sh; ensure_helm; sha256sum "$helm"; echo "$helm_sha256"'
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    found, expected = done.stdout.splitlines()
    assert found == f"{expected}  {Path(sys.prefix) / 'share' / 'rkgrade' / 'helm'}"


def test_another_header_than_the_expected_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "testlib.h").write_text("#pragma once\n")
    script = 'source scripts/lib.sh; is_testlib "$1"'
    for name in ("testlib.h", "nowhere.h"):
        assert subprocess.run(["bash", "-c", script, "bash", tmp_path / name], cwd=ROOT, timeout=60).returncode == 1
