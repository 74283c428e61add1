"""A bound on stored problems: which make room, which never do, and what is said where there is none."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.stores.problems import ProblemStore, StoreFull
from tests.serving import metric, serving

BLOCK = 4096


def content(number: int, blocks: int = 1) -> bytes:
    return f"{number:08}".encode() * (blocks * BLOCK // 8)


class Removed:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, count: int) -> None:
        self.count += count


def put(store: ProblemStore, number: int, *, used_ago_s: float = 0.0, blocks: int = 1) -> str:
    identifier, created = store.put([content(number, blocks)])
    assert created
    path = path_of(store, identifier)
    os.utime(path, (time.time() - used_ago_s, path.stat().st_mtime))
    return identifier


def path_of(store: ProblemStore, identifier: str) -> Path:
    digest = identifier.removeprefix("sha256:")
    return store._directory / digest[:2] / f"{digest[2:]}.json"


def test_the_least_recently_used_make_room_and_no_more_than_have_to(tmp_path: Path) -> None:
    removed = Removed()
    store = ProblemStore(tmp_path, limit_bytes=20 * BLOCK, removed=removed)
    stored = [put(store, number, used_ago_s=10_000 - number) for number in range(20)]
    put(store, 99)
    # One for the new one and a tenth of the limit beyond.
    assert [store.contains(one) for one in stored] == [False] * 3 + [True] * 17
    assert removed.count == 3


def test_what_was_used_within_the_hour_is_never_removed(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path, limit_bytes=4 * BLOCK)
    stored = [put(store, number, used_ago_s=3500) for number in range(4)]
    with pytest.raises(StoreFull, match="all that is stored is in use"):
        store.put([content(99)])
    assert all(store.contains(one) for one in stored)
    assert [path.name for path in tmp_path.glob(".new-*")] == []
    # What is there already needs no room.
    assert store.put([content(0)]) == (stored[0], False)


def test_what_a_grade_under_way_needs_is_never_removed(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path, limit_bytes=2 * BLOCK)
    first, second = (put(store, number, used_ago_s=10_000 - number) for number in range(2))
    with store.held([first]):
        third = put(store, 3, used_ago_s=9_000)
        assert (store.contains(first), store.contains(second)) == (True, False)
    put(store, 4)
    assert not store.contains(first)
    assert not store.contains(third)


def test_a_use_is_seen_by_every_process_and_changes_nothing_that_is_known(tmp_path: Path) -> None:
    ours, theirs = (ProblemStore(tmp_path, limit_bytes=2 * BLOCK) for _ in range(2))
    first, second = (put(ours, number, used_ago_s=10_000 - number) for number in range(2))
    assert theirs.get(first) == content(0)
    theirs.used(first)
    assert theirs.remembers(first)
    put(ours, 3)
    assert (ours.contains(first), ours.contains(second)) == (True, False)


def test_what_is_larger_than_the_bound_removes_nothing(tmp_path: Path) -> None:
    store = ProblemStore(tmp_path, limit_bytes=2 * BLOCK)
    stored = put(store, 1, used_ago_s=10_000)
    with pytest.raises(StoreFull, match="larger than all that may be stored"):
        store.put([content(2, blocks=3)])
    assert store.contains(stored)


@pytest.mark.jail
def test_a_full_store_is_507_and_old_problems_make_room_for_new_ones(
    grader_data_dir: Path, tmp_path: Path, a_plus_b: dict[str, Any]
) -> None:
    def sized(number: int) -> dict[str, Any]:
        return a_plus_b["problem"] | {"tests": [{"input": "1 2\n", "output": "3\n", "name": str(number)},
                                                {"input": "1 2" + " " * 300_000, "output": "3"}]}  # fmt: skip

    flags = ("--workers", "1", "--languages", "python", "--problem-store-mb", "1")
    with serving(grader_data_dir / "bounded", tmp_path / "log", *flags) as server:
        problems = server.data_dir / "problems"
        answers = [httpx.put(f"{server.url}/problems", json=sized(number)) for number in range(4)]
        assert answers[-1].status_code == 507
        assert answers[-1].json()["type"] == "urn:rkgrade:error:disk-full"
        assert "in use" in answers[-1].json()["detail"]
        long_ago = time.time() - 10_000
        for path in problems.glob("??/*.json"):
            os.utime(path, (long_ago, path.stat().st_mtime))
        assert httpx.put(f"{server.url}/problems", json=sized(4)).status_code == 201
        graded = httpx.post(f"{server.url}/grade", json=a_plus_b | {"problem": sized(5)}, timeout=60)
        assert graded.json()["verdict"] == "accepted"
        assert metric(server.url, "rkgrade_problems_removed_total") >= 1
        assert sum(path.stat().st_size for path in problems.glob("??/*.json")) <= 2**20
