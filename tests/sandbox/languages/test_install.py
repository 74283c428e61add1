"""Set-up of toolchains: what is there is left alone, what is fetched is what was chosen, half is never whole."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import threading
from pathlib import Path

import pytest

from sandbox.languages import REGISTRY, install
from sandbox.languages.base import TOOLS, Prebuilt, shell
from sandbox.languages.install import CannotInstall


def test_every_language_says_what_to_fetch_for_it() -> None:
    assert [entry.id for entry in REGISTRY.values() if not (entry.install.apt or entry.install.wheels)] == []


def test_locks_name_releases_and_hashes_and_nothing_else() -> None:
    line = re.compile(r"[a-z0-9-]+==[\w.]+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    locks = sorted(path.name for path in install.LOCKS.glob("*.txt"))
    assert locks == sorted({f"{one.install.wheels}.txt" for one in REGISTRY.values() if one.install.wheels})
    for lock in locks:
        assert [text for text in (install.LOCKS / lock).read_text().splitlines() if not line.fullmatch(text)] == []


def test_npm_packages_are_named_by_version_and_hash() -> None:
    named = [entry.install.npm for entry in REGISTRY.values() if entry.install.npm]
    assert all(re.fullmatch(r"[a-z-]+@\d+\.\d+\.\d+", name) for name, _, _ in named)
    assert all(re.fullmatch(r"sha512-[\w+/]{86}==", integrity) for _, integrity, _ in named)


def test_an_unknown_language_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main("cobol") == 2
    assert "unknown language 'cobol'" in capsys.readouterr().err


@pytest.mark.jail
def test_what_is_installed_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """`scripts/test` has installed the default set before."""
    stamps = {path: path.stat().st_mtime_ns for path in Path(TOOLS).glob(f"*/{install.STAMP}")}
    assert install.main("default") == 0
    assert capsys.readouterr().err == ""
    assert stamps == {path: path.stat().st_mtime_ns for path in Path(TOOLS).glob(f"*/{install.STAMP}")}


@pytest.mark.jail
def test_who_has_it_all_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `scripts/run` does beside another that installs further languages."""
    monkeypatch.setattr(install, "take", lambda _: pytest.fail("asked for the lock"))
    assert install.main("default") == 0


def test_one_who_waits_for_another_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "lock").open("w") as theirs, (tmp_path / "lock").open("w") as ours:
        install.take(theirs)
        assert capsys.readouterr().err == ""
        threading.Timer(0.2, lambda: fcntl.flock(theirs, fcntl.LOCK_UN)).start()
        install.take(ours)
        assert "waiting for another installation" in capsys.readouterr().err
        with (tmp_path / "lock").open("w") as third, pytest.raises(BlockingIOError):
            fcntl.flock(third, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_is_made_is_made_once_and_anew_where_it_is_another(tmp_path: Path) -> None:
    built = []
    directory = tmp_path / "tool"

    def build(new: Path) -> None:
        assert not any(new.iterdir())
        (new / "file").write_text("x")
        (new / "file").chmod(0o600)
        built.append(new)

    for content in ("one", "one", "two", "two"):
        install.fill(directory, content, build)
    assert built == [directory, directory]
    assert (directory / "file").stat().st_mode & 0o777 == 0o644


def test_what_failed_half_way_is_made_again(tmp_path: Path) -> None:
    directory = tmp_path / "tool"

    def fail(new: Path) -> None:
        (new / "half").write_text("x")
        raise CannotInstall("no")

    with pytest.raises(CannotInstall):
        install.fill(directory, "content", fail)
    install.fill(directory, "content", lambda new: (new / "whole").write_text("x"))
    assert {path.name for path in directory.iterdir()} == {"whole", install.STAMP}


def test_commands_run_where_their_files_are_and_failures_are_told(tmp_path: Path) -> None:
    install.make(Prebuilt("x", (("a", "text"),), (shell("cat a a >b"),)), tmp_path)
    assert (tmp_path / "b").read_text() == "texttext"
    with pytest.raises(CannotInstall, match=r"failed: .*no-such-file"):
        install.make(Prebuilt("x", (), (shell("cat no-such-file"),)), tmp_path)
    with pytest.raises(CannotInstall, match="/nonexistent/tool"):
        install.make(Prebuilt("x", (), (("/nonexistent/tool",),)), tmp_path)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm serves languages beyond the default set alone")
def test_a_package_of_npms_that_is_another_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "package.json").write_text(json.dumps({"name": "thing", "version": "1.0.0"}))
    (package / "index.js").write_text("1;\n")
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(CannotInstall, match="is not what it was") as refused:
        install.install_npm(str(package), "sha512-of-another", target)
    assert list(target.iterdir()) == []
    found = re.search(r"sha512-[\w+/]+==", str(refused.value))
    assert found is not None
    install.install_npm(str(package), found[0], target)
    assert {path.name for path in target.iterdir()} == {"package.json", "index.js"}


def test_packages_of_the_distribution_are_looked_up() -> None:
    assert install.is_installed("bash")
    assert not install.is_installed("no-such-package-of-ours")
    assert install.has_candidate("bash")
    assert not install.has_candidate("no-such-package-of-ours")
