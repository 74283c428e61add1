"""Stores named by URL, on what fsspec serves."""

from __future__ import annotations

import concurrent.futures
import errno
import sys
import uuid
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from pydantic import ValidationError

from service.settings import Settings
from service.stores import shared
from service.stores.problems import CorruptProblem, StoreFull, StoreUnreachable, UnknownProblem, problem_id
from service.stores.shared import SharedProblems, open_store

PROBLEM = b'{"kind":"stdio","tests":[]}'
ID = problem_id(PROBLEM)


class Unreachable(MemoryFileSystem):
    """A store of fsspec's whose server is down."""

    protocol = "unreachable"

    def info(self, path: str, **kwargs: object) -> dict[str, object]:
        raise ConnectionRefusedError(path)


class FullUp(MemoryFileSystem):
    """A store of fsspec's that takes no more."""

    protocol = "fullup"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


fsspec.register_implementation("unreachable", Unreachable, clobber=True)
fsspec.register_implementation("fullup", FullUp, clobber=True)


@pytest.fixture
def url() -> str:
    """Of a store that nothing is in yet."""
    return f"memory://{uuid.uuid4().hex}/problems"


def test_what_one_host_has_put_another_finds_and_keeps(url: str, tmp_path: Path) -> None:
    one, other = (SharedProblems(tmp_path / name, url) for name in ("one", "other"))
    with pytest.raises(UnknownProblem):
        other.get(ID)
    assert not other.contains(ID)
    assert one.put([PROBLEM[:5], PROBLEM[5:]]) == (ID, True)
    assert other.put([PROBLEM]) == (ID, False)
    third = SharedProblems(tmp_path / "third", url)
    assert third.contains(ID)
    assert third.size(ID) == len(PROBLEM)
    assert third.get(ID) == PROBLEM
    # From here on it lies with the third, too.
    assert len(list((tmp_path / "third").glob("??/*.json"))) == 1
    assert third.remembers(ID)


def test_a_cached_problem_that_is_damaged_is_fetched_again(url: str, tmp_path: Path) -> None:
    store = SharedProblems(tmp_path, url)
    store.put([PROBLEM])
    [file] = tmp_path.glob("??/*.json")
    file.write_bytes(PROBLEM.replace(b"stdio", b"stdin"))
    assert store.get(ID) == PROBLEM
    assert file.read_bytes() == PROBLEM


def test_what_is_damaged_in_the_shared_store_is_never_used(url: str, tmp_path: Path) -> None:
    SharedProblems(tmp_path / "one", url).put([PROBLEM])
    files, root = fsspec.url_to_fs(url)
    [name] = files.find(root)
    files.pipe_file(name, PROBLEM.replace(b"stdio", b"stdin"))
    with pytest.raises(CorruptProblem):
        SharedProblems(tmp_path / "other", url).get(ID)
    # One of another length is put anew.
    files.pipe_file(name, PROBLEM[:10])
    assert SharedProblems(tmp_path / "one", url).put([PROBLEM]) == (ID, True)
    assert SharedProblems(tmp_path / "third", url).get(ID) == PROBLEM


def test_many_threads_learn_at_once_what_is_there(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As grades of a batch do, each of a problem of its own, while no more are remembered than may be."""
    monkeypatch.setattr(shared, "_MOST_REMEMBERED", 50)
    contents = [b'{"n":%d}' % n for n in range(400)]
    store = SharedProblems(tmp_path / "one", url)
    ids = [store.put([content])[0] for content in contents]
    other = SharedProblems(tmp_path / "other", url)
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            assert all(pool.map(other.contains, ids * 5))
    finally:
        sys.setswitchinterval(interval_s)
    assert len(other._there) == 50


@pytest.mark.parametrize("told", [True, False])
def test_the_cache_is_bounded_and_loses_nothing(
    url: str, tmp_path: Path, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_CACHE_BYTES", 2**30 if told else 3 * 4096)
    store = SharedProblems(tmp_path, url, limit_bytes=3 * 4096 if told else None)
    contents = [b'{"n":%d,"pad":"%s"}' % (n, b"x" * 3000) for n in range(10)]
    ids = [store.put([content])[0] for content in contents]
    assert sum(file.stat().st_size for file in tmp_path.glob("??/*.json")) <= 3 * 4096
    assert [store.get(identifier) for identifier in ids] == contents


def test_a_store_out_of_reach_says_so_and_the_cache_serves_on(tmp_path: Path) -> None:
    store = SharedProblems(tmp_path, "unreachable://somewhere/problems")
    with pytest.raises(StoreUnreachable):
        store.put([PROBLEM])
    assert store.get(ID) == PROBLEM


def test_a_store_that_is_full_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreFull):
        SharedProblems(tmp_path, "fullup://somewhere/problems").put([PROBLEM])


def test_a_directory_is_opened_as_one(tmp_path: Path) -> None:
    open_store(tmp_path / "unused", f"file://{tmp_path}/shared").put([PROBLEM])
    assert open_store(tmp_path / "shared" / "problems", None).get(ID) == PROBLEM


@pytest.mark.parametrize("url", ["nothing://here", "plain/path", "file://host/path"])
def test_a_url_that_nothing_serves_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="store_url"):
        Settings(store_url=url)
