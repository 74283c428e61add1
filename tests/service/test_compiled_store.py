"""Compiled programs in a store that hosts share, and that anybody may have written to."""

from __future__ import annotations

import hashlib
import hmac
import os
import random
import time
import uuid
from pathlib import Path

import fsspec
import pytest
import zstandard
from fsspec.implementations.memory import MemoryFileSystem

from sandbox.compiling import SharedProgram
from service.stores import compiled
from service.stores.compiled import CompiledStore, SecretUnknown
from service.stores.remote import Remote, RemoteFile
from service.stores.secret import read_secret

KEY, OTHER = "ab" * 32, "cd" * 32
PROGRAM = SharedProgram(b"\x7fELF" + b"\0" * 100_000, "a warning: é")
SECRET = b"s" * 32


class Refusing(MemoryFileSystem):
    """A store of fsspec's that refuses who asks."""

    protocol = "refusing"
    asked = 0

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: object) -> bytes:
        type(self).asked += 1
        raise PermissionError(path)


fsspec.register_implementation("refusing", Refusing, clobber=True)


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a store that nothing is in yet."""
    return f"memory://{uuid.uuid4().hex}/shared" if request.param == "memory" else f"file://{tmp_path}/shared"


def store(url: str, secret: bytes = SECRET, limit_bytes: int | None = None) -> CompiledStore:
    return CompiledStore(url, lambda: secret, limit_bytes=limit_bytes)


def test_what_one_host_has_put_another_gets(url: str) -> None:
    assert store(url).get(KEY) is None
    store(url).put(KEY, PROGRAM)
    other = store(url)
    assert other.get(KEY) == PROGRAM
    assert other.get(OTHER) is None
    assert other.take_fault() is None


def files(url: str) -> tuple[MemoryFileSystem, dict[str, bytes]]:
    there, root = fsspec.url_to_fs(url)
    return there, {name: there.cat_file(name) for name in there.find(root)}


def forged(artefact: bytes, secret: bytes) -> bytes:
    """An entry of somebody's who knows all but the secret."""
    packed = zstandard.compress(b"\0\0\0\0" + artefact)
    magic = b"rkgrade program 1\n"
    return magic + hmac.digest(secret, magic + KEY.encode() + b"\n" + packed, "sha256") + packed


@pytest.mark.parametrize("how", ["another's program", "forged", "rotten", "cut off", "empty", "nonsense"])
def test_what_no_host_of_ours_put_there_is_nothing_and_is_replaced(url: str, how: str) -> None:
    store(url).put(KEY, PROGRAM)
    there, found = files(url)
    [(name, entry)] = found.items()
    store(url).put(OTHER, SharedProgram(b"always accepts", ""))
    [other] = [content for at, content in files(url)[1].items() if at != name]
    spoiled = {
        "another's program": other,
        "forged": forged(b"always accepts", b"guessed"),
        "rotten": entry[:-10] + b"x" + entry[-9:],
        "cut off": entry[:-5],
        "empty": b"",
        "nonsense": b"rkgrade program 1\n" * 100,
    }[how]
    there.pipe_file(name, spoiled)
    assert store(url).get(KEY) is None
    store(url).put(KEY, PROGRAM)
    assert store(url).get(KEY) == PROGRAM


@pytest.mark.parametrize("how", ["a pipe", "a link to a pipe", "a link to nothing", "a link to a file", "a device"])
def test_what_is_no_file_is_neither_waited_for_nor_followed(tmp_path: Path, how: str) -> None:
    """Whoever may write to the directory would stop graders with it, or have them write over what is theirs."""
    url = f"file://{tmp_path}/shared"
    store(url).put(KEY, PROGRAM)
    [entry] = (path for path in (tmp_path / "shared").rglob("*") if path.is_file())
    entry.unlink()
    elsewhere = tmp_path / "elsewhere"
    match how:
        case "a pipe":
            os.mkfifo(entry)
        case "a link to a pipe":
            os.mkfifo(elsewhere)
            entry.symlink_to(elsewhere)
        case "a link to nothing":
            entry.symlink_to(elsewhere)
        case "a link to a file":
            elsewhere.write_bytes(b"precious")
            entry.symlink_to(elsewhere)
        case "a device":
            entry.symlink_to("/dev/zero")
    there = store(url)
    assert there.get(KEY) is None
    there.put(KEY, PROGRAM)
    assert there.take_fault() is None
    assert there.get(KEY) == PROGRAM
    assert entry.is_file() and not entry.is_symlink()
    assert elsewhere.exists() is (how in ("a link to a pipe", "a link to a file"))
    assert how != "a link to a file" or elsewhere.read_bytes() == b"precious"
    assert [path for path in entry.parent.iterdir() if path != entry] == []


def test_the_forger_who_knows_the_secret_would_get_in(url: str) -> None:
    """So the test above fails for the secret's sake alone."""
    store(url).put(KEY, PROGRAM)
    there, found = files(url)
    there.pipe_file(next(iter(found)), forged(b"always accepts", SECRET))
    assert store(url).get(KEY) == SharedProgram(b"always accepts", "")


def test_hosts_with_other_secrets_share_nothing(url: str) -> None:
    store(url).put(KEY, PROGRAM)
    assert store(url, b"another" * 5).get(KEY) is None


def test_a_program_that_is_huge_is_left_to_each_host(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_MOST_BYTES", 5000)
    store(url).put(KEY, SharedProgram(bytes(range(256)) * 4, ""))
    assert store(url).get(KEY) is not None
    store(url).put(OTHER, SharedProgram(noise(6400), ""))
    assert store(url).get(OTHER) is None


def noise(length: int) -> bytes:
    """What no compression makes smaller."""
    return random.Random(length).randbytes(length)


def keys(count: int) -> list[str]:
    return [hashlib.sha256(bytes([number])).hexdigest() for number in range(count)]


def test_programs_that_were_put_first_make_room(url: str) -> None:
    bounded = store(url, limit_bytes=200_000)
    # Not a compiled program's, though beside them: nothing else is touched.
    bounded._remote.write("problems/00/other.json", noise(300_000))
    for key in (all_keys := keys(20)):
        bounded.put(key, SharedProgram(noise(20_000), ""))
        time.sleep(0.005)
    there = [key for key in all_keys if bounded.get(key) is not None]
    # The latest of them, and no more than the bound: 20 KiB each as they lie on a disk.
    assert there == all_keys[-len(there) :]
    assert len(there) in (8, 9)
    assert bounded._remote.size("problems/00/other.json") == 300_000
    assert bounded.take_fault() is None


def test_without_a_bound_programs_stay(url: str) -> None:
    unbounded = store(url)
    for key in keys(20):
        unbounded.put(key, SharedProgram(noise(20_000), ""))
    assert all(unbounded.get(key) is not None for key in keys(20))


def test_a_look_at_all_that_is_there_comes_once_in_a_while_whoever_puts(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often for many workers that put a little each as for one that puts much."""
    looks = 0
    found = Remote.files

    def counted(self: Remote, folder: str, *, within_s: float) -> list[RemoteFile]:
        nonlocal looks
        looks += 1
        return found(self, folder, within_s=within_s)

    monkeypatch.setattr(Remote, "files", counted)
    monkeypatch.setattr(compiled.random, "random", random.Random(1).random)
    for number in range(400):
        store(url, limit_bytes=2_000_000).put(keys(40)[number % 40], SharedProgram(noise(10_000), ""))
    # 4 MB are put, and a sixteenth of the bound is 125 kB.
    assert 16 <= looks <= 64


def test_what_is_written_and_removed_lies_in_the_store_whatever_links_are_laid_there(tmp_path: Path) -> None:
    """Graders are root; who may write to the directory need not be."""
    url = f"file://{tmp_path}/shared"
    elsewhere = tmp_path / "elsewhere"
    for folder in ("ab", "cd"):
        (elsewhere / folder).mkdir(parents=True)
        (elsewhere / folder / ("0" * 62)).write_bytes(noise(50_000))
        os.utime(elsewhere / folder / ("0" * 62), (1, 1))
    bounded = store(url, limit_bytes=100_000)
    bounded.put(OTHER, PROGRAM)
    programs = tmp_path / "shared/programs"
    (programs / "ab").symlink_to(elsewhere / "ab")
    (programs / "ee").mkdir()
    (programs / "ee" / "link").symlink_to(elsewhere / "cd" / ("0" * 62))
    for key in keys(20):
        if key[:2] not in ("ab", "ee"):
            bounded.put(key, SharedProgram(noise(20_000), ""))
    # One that was found in the store, in a folder that is a link by now.
    there = Remote(url)
    [*_, last] = there.files("programs", within_s=1)
    folder = tmp_path / "shared" / Path(last.name).parent
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    there.remove("programs", [last.name, "programs/ab/" + "0" * 62], within_s=1)
    assert (tmp_path / "moved" / Path(last.name).name).exists()
    # Nor is anything written, or read, there.
    store(url).put(KEY, PROGRAM)
    assert store(url).get(KEY) is None
    assert [len(path.read_bytes()) for path in elsewhere.rglob("*") if path.is_file()] == [50_000, 50_000]
    assert (programs / "ee" / "link").is_symlink()


def test_a_store_that_fails_is_left_alone_for_a_while() -> None:
    shared = store("refusing://bucket/shared")
    assert shared.get(KEY) is None
    asked = Refusing.asked
    assert shared.get(KEY) is None
    shared.put(KEY, PROGRAM)
    assert Refusing.asked == asked == 1
    fault = shared.take_fault()
    assert fault is not None and "refuses these credentials" in fault
    assert shared.take_fault() is None


def test_without_the_secret_nothing_is_shared(url: str) -> None:
    def unknown() -> bytes:
        raise SecretUnknown("Redis is away")

    store(url).put(KEY, PROGRAM)
    without = CompiledStore(url, unknown)
    assert without.get(KEY) is None
    assert without.take_fault() == "Redis is away"


def test_a_secret_is_a_file_that_nobody_else_may_read(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_text("0123456789abcdef" * 2 + "\n")
    again = tmp_path / "again"
    again.touch(0o600)
    again.write_text("0123456789abcdef" * 2)
    assert read_secret(file) == read_secret(again)
    file.chmod(0o644)
    with pytest.raises(ValueError, match="0644 lets others at it"):
        read_secret(file)
    again.write_text("short")
    with pytest.raises(ValueError, match="fewer than 32 characters"):
        read_secret(again)
    with pytest.raises(ValueError, match="No such file"):
        read_secret(tmp_path / "missing")
