"""Entries in a file that several processes write, some of which are killed over it."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.verdicts import on_disk
from service.verdicts.cache import StoreFailed
from service.verdicts.on_disk import DiskVerdicts

KEYS = [f"{number:064x}" for number in range(2000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "verdicts" / "verdicts.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[DiskVerdicts]:
    store = DiskVerdicts(path, limit_bytes=2**20, keep_s=1000)
    yield store
    store.close()


def test_what_one_has_put_another_gets_and_nobody_else_may_look(store: DiskVerdicts, path: Path) -> None:
    other = DiskVerdicts(path, limit_bytes=2**20, keep_s=1000)
    assert store.get(KEYS[0]) is None
    other.put(KEYS[0], b"\0entry")
    other.put(KEYS[0], b"later")
    assert store.get(KEYS[0]) == b"\0entry"
    assert path.parent.stat().st_mode & 0o777 == 0o700
    store.remove(KEYS[0])
    assert other.get(KEYS[0]) is None
    other.put(KEYS[0], b"anew")
    assert store.get(KEYS[0]) == b"anew"
    other.close()


def test_what_is_too_old_is_nothing_and_is_replaced(store: DiskVerdicts, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.time()
    monkeypatch.setattr(on_disk.time, "time", lambda: now_s)
    store.put(KEYS[0], b"old")
    now_s += 999
    assert store.get(KEYS[0]) == b"old"
    now_s += 2
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], b"new")
    assert store.get(KEYS[0]) == b"new"
    # After a clock that ran ahead was set right.
    now_s -= 5000
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], b"newer")
    assert store.get(KEYS[0]) == b"newer"


def test_the_oldest_make_room_and_the_file_stays_within_its_bound(store: DiskVerdicts, path: Path) -> None:
    for key in KEYS:
        store.put(key, key.encode() * 50)
    kept = [key for key in KEYS if store.get(key) is not None]
    assert kept == KEYS[-len(kept) :]
    assert 150 < len(kept) < 350
    assert path.stat().st_size <= 2**20 + 64 * 2**10


def test_one_entry_larger_than_the_bound_is_not_kept(store: DiskVerdicts) -> None:
    store.put(KEYS[0], b"x" * 2**21)
    assert store.get(KEYS[0]) is None
    store.put(KEYS[1], b"small")
    assert store.get(KEYS[1]) == b"small"


@pytest.mark.parametrize("damage", ["no database", "torn pages", "gone"])
def test_a_damaged_file_is_replaced(path: Path, damage: str) -> None:
    store = DiskVerdicts(path, limit_bytes=2**20, keep_s=1000)
    for key in KEYS[:200]:
        store.put(key, b"entry" * 50)
    store.close()
    if damage == "gone":
        path.unlink()
    else:
        content = path.read_bytes()
        torn = content[:4096] + b"\xa5" * (len(content) - 4096)
        path.write_bytes(b"nonsense" * 1000 if damage == "no database" else torn)
    again = DiskVerdicts(path, limit_bytes=2**20, keep_s=1000)
    if damage != "gone":
        with pytest.raises(StoreFailed):
            again.get(KEYS[0])
    assert again.get(KEYS[0]) is None
    again.put(KEYS[0], b"anew")
    assert again.get(KEYS[0]) == b"anew"
    again.close()


def test_one_who_holds_the_file_up_is_not_waited_for_long(store: DiskVerdicts, path: Path) -> None:
    store.put(KEYS[0], b"entry")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    begun_s = time.monotonic()
    with pytest.raises(StoreFailed, match="locked"):
        store.put(KEYS[1], b"entry")
    assert time.monotonic() - begun_s < 2
    # Who reads waits for nobody.
    assert store.get(KEYS[0]) == b"entry"
    holder.close()
    store.put(KEYS[1], b"entry")
    assert store.get(KEYS[1]) == b"entry"


def test_a_place_that_cannot_be_written_is_a_failed_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed):
        DiskVerdicts(tmp_path / "file" / "verdicts.sqlite", limit_bytes=2**20, keep_s=1000).get(KEYS[0])


WRITER = """
import sys, itertools
from pathlib import Path
from service.verdicts.cache import StoreFailed
from service.verdicts.on_disk import DiskVerdicts
store = DiskVerdicts(Path(sys.argv[1]), limit_bytes=2**20, keep_s=1000)
for number in itertools.count():
    if number == 50:
        print("at work", flush=True)
    key = f"{number % 1500:064x}"
    try:
        store.put(key, key.encode() * 40)
        entry = store.get(key)
    except StoreFailed:
        continue
    assert entry in (None, key.encode() * 40), "another's entry"
"""


@contextlib.contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes, and goes on; killed at the end."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        try:
            yield process
            assert process.poll() is None
        finally:
            process.kill()


def test_writers_that_are_killed_leave_nothing_half_written(path: Path) -> None:
    with writer(path), writer(path):
        for _ in range(5):
            with writer(path):
                pass
    store = DiskVerdicts(path, limit_bytes=2**20, keep_s=1000)
    found = {key: store.get(key) for key in KEYS[:1500]}
    assert {key: entry for key, entry in found.items() if entry not in (None, key.encode() * 40)} == {}
    assert any(found.values())
    store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
