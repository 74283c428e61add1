"""Keeping results and finding them, whatever the store of entries does."""

from __future__ import annotations

import hashlib
import zlib

import pytest

from service.verdicts import cache as cache_module
from service.verdicts.cache import MOST_BYTES, UNSETTLED, StoreFailed, VerdictCache
from tests.service.verdicts.entries import KEY, OTHER, as_json, result


class Entries:
    """Entries in memory, for whoever wants to damage them; a store that fails while `fails` is set."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.fails = False
        self.asked = 0

    def get(self, key: str) -> bytes | None:
        self._fail()
        return self.kept.get(key)

    def put(self, key: str, entry: bytes) -> None:
        self._fail()
        self.kept.setdefault(key, entry)

    def remove(self, key: str) -> None:
        self._fail()
        self.kept.pop(key, None)

    def _fail(self) -> None:
        self.asked += 1
        if self.fails:
            raise StoreFailed("no such store")


@pytest.fixture
def entries() -> Entries:
    return Entries()


def test_a_result_is_found_again_without_what_was_its_requests_own(entries: Entries) -> None:
    cache = VerdictCache(entries)
    assert cache.get(KEY) is None
    cache.keep(KEY, as_json("é\0\ud7ff"))
    assert cache.get(KEY) == result("é\0\ud7ff", id=None).model_copy(update={"index": None})
    assert b"step-1" not in zlib.decompress(entries.kept[KEY][32:])


def test_the_first_result_stands(entries: Entries) -> None:
    cache = VerdictCache(entries)
    cache.keep_unsettled(KEY)
    cache.keep(KEY, as_json())
    assert cache.get(KEY) is UNSETTLED


def damaged(entry: bytes) -> dict[str, bytes]:
    packed = entry[32:]

    def signed(body: bytes) -> bytes:
        return hashlib.sha256(KEY.encode() + b"\0" + body).digest() + body

    return {
        "empty": b"",
        "cut off": entry[:-1],
        "longer": entry + b"x",
        "a bit flipped": entry[:40] + bytes([entry[40] ^ 1]) + entry[41:],
        "another key's": hashlib.sha256(OTHER.encode() + b"\0" + packed).digest() + packed,
        "no compressed text": signed(b"{}"),
        "no JSON": signed(zlib.compress(b"\xff{")),
        "no result": signed(zlib.compress(b'{"verdict": "accepted"}')),
        "a bomb": signed(zlib.compress(b" " * 2**28 + b"{}")),
        "cut off before it was compressed": signed(packed[:-5]),
    }


@pytest.mark.parametrize("how", damaged(b"\0" * 50))
def test_what_is_not_as_it_was_written_is_nothing_and_makes_room_for_what_is(entries: Entries, how: str) -> None:
    cache = VerdictCache(entries)
    cache.keep(KEY, as_json())
    entries.kept[KEY] = damaged(entries.kept[KEY])[how]
    assert cache.get(KEY) is None
    cache.keep(KEY, as_json("anew"))
    known = cache.get(KEY)
    assert known is not None and known is not UNSETTLED
    assert known.tests[0].message == "anew"


def test_a_result_that_is_huge_is_not_kept(entries: Entries) -> None:
    cache = VerdictCache(entries)
    cache.keep(KEY, as_json("x" * MOST_BYTES))
    assert entries.kept == {}
    cache.keep(KEY, as_json("x" * (MOST_BYTES - 2000)))
    assert cache.get(KEY) is not None


def test_a_store_that_fails_is_left_alone_for_a_while(entries: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_AGAIN_S", 0.0)
    patient = VerdictCache(entries)
    monkeypatch.undo()
    cache = VerdictCache(entries)
    entries.fails = True
    assert cache.get(KEY) is None
    asked = entries.asked
    cache.keep(KEY, as_json())
    cache.keep_unsettled(KEY)
    assert cache.get(KEY) is None
    assert entries.asked == asked
    assert (cache.take_fault(), cache.take_fault()) == ("no such store", None)
    # One whose while is over asks again.
    patient.keep(KEY, as_json())
    entries.fails = False
    patient.keep(KEY, as_json())
    assert patient.get(KEY) is not None
