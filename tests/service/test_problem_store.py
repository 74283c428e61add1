from __future__ import annotations

import multiprocessing
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service import contract
from service.stores.problems import CorruptProblem, ProblemStore, StoreFull, UnknownProblem, problem_id

CONTENT = b'{"kind":"stdio","tests":[{"input":"1 2\\n","output":"3\\n"}]}'


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def test_what_is_put_is_got_by_the_id_of_the_contract(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path)
    problem = contract.parse_problem(CONTENT)
    identifier, created = store.put(contract.canonical_chunks(problem))
    assert created
    assert identifier == contract.problem_id(problem)
    assert contract.parse_problem(store.get(identifier)) == problem
    assert store.contains(identifier)


def test_putting_again_writes_nothing(tmp_path: Path) -> None:
    identifier, _ = ProblemStore(tmp_path).put([CONTENT])
    [path] = files(tmp_path)
    before = path.stat().st_ino
    for store in (ProblemStore(tmp_path), ProblemStore(tmp_path)):
        assert store.put([CONTENT]) == (identifier, False)
        assert store.put([CONTENT]) == (identifier, False)
    assert path.stat().st_ino == before
    assert files(tmp_path) == [path]


@pytest.mark.parametrize(
    "identifier",
    [problem_id(b"something else"), "sha256:", "sha256:../../etc/passwd", "", "sha256:" + "g" * 64],
)
def test_an_unknown_id_is_unknown_whatever_it_looks_like(tmp_path: Path, identifier: str) -> None:
    store = ProblemStore(tmp_path)
    assert not store.contains(identifier)
    with pytest.raises(UnknownProblem):
        store.get(identifier)


def test_a_file_that_was_touched_is_no_longer_known_to_be_whole(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path)
    identifier, _ = store.put([CONTENT])
    [path] = files(tmp_path)
    assert store.remembers(identifier)
    before = path.stat()
    # As long as it was, and as old.
    path.write_bytes(CONTENT.replace(b"3", b"4"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not store.remembers(identifier)
    assert store.put([CONTENT]) == (identifier, True)
    assert store.get(identifier) == CONTENT
    assert store.remembers(identifier)


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], CONTENT.replace(b"3", b"4")])
def test_damage_is_reported_and_mended_by_putting_again(tmp_path: Path, damage: bytes) -> None:
    identifier, _ = ProblemStore(tmp_path).put([CONTENT])
    [path] = files(tmp_path)
    path.write_bytes(damage)
    store = ProblemStore(tmp_path)
    with pytest.raises(CorruptProblem):
        store.get(identifier)
    assert store.put([CONTENT]) == (identifier, True)
    assert store.get(identifier) == CONTENT


def test_damage_found_by_a_store_that_wrote_it_is_mended_too(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path)
    identifier, _ = store.put([CONTENT])
    files(tmp_path)[0].write_bytes(CONTENT.replace(b"3", b"4"))
    with pytest.raises(CorruptProblem):
        store.get(identifier)
    assert store.put([CONTENT]) == (identifier, True)
    assert store.get(identifier) == CONTENT


def _write_all(directory: Path, contents: list[bytes]) -> None:
    store = ProblemStore(directory)
    for content in contents:
        identifier, _ = store.put([content])
        assert store.get(identifier) == content


def test_many_writers_of_the_same_problems_agree(tmp_path: Path) -> None:
    contents = [b"%d" % number * 50_000 for number in range(20)]
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_all, args=(tmp_path, contents)) for _ in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 6
    assert len(files(tmp_path)) == 20
    store = ProblemStore(tmp_path)
    assert [store.get(problem_id(content)) for content in contents] == contents


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "small"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", directory], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


@pytest.mark.jail
def test_a_full_disk_is_reported_and_leaves_no_half_file(small_disk: Path) -> None:
    store = ProblemStore(small_disk)
    identifier, _ = store.put([CONTENT])
    with pytest.raises(StoreFull, match="no room"):
        store.put([b"x"] * 100_000)
    assert not store.contains(problem_id(b"x" * 100_000))
    assert len(files(small_disk)) == 1
    assert store.get(identifier) == CONTENT


def test_the_sweep_takes_what_killed_writers_left_and_nothing_else(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path)
    identifier, _ = store.put([CONTENT])
    directory = tmp_path
    (directory / ".new-old").write_bytes(b"half")
    (directory / ".new-live").write_bytes(b"half")
    os.utime(directory / ".new-old", (time.time() - 7200,) * 2)
    store.sweep()
    assert sorted(path.name for path in directory.glob(".new-*")) == [".new-live"]
    assert store.get(identifier) == CONTENT
