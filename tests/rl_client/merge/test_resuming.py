"""Merges that are interrupted: nothing half-written looks whole, and merging again goes on."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rl_client.merge import run
from rl_client.merge.errors import CannotWrite, NotFinite, OutputTaken
from rl_client.merge.opening import opened
from rl_client.merge.output import Output, Shard
from rl_client.merge.reading import Reading
from rl_client.merge.recipes import of_alpha
from tests.rl_client.merge.checkpoints import Silent, as_bytes, average, read, tensors, write

SHARDS = [{f"layer.{number}": (40, 50)} for number in range(4)]


def pair(folder: Path) -> list[Path]:
    return [
        write(folder / name, [tensors(seed + number, **shapes) for number, shapes in enumerate(SHARDS)])
        for seed, name in ((10, "low"), (20, "high"))
    ]


def digests(folder: Path) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.glob("*.safetensors")}


class Ending(Silent):
    """Ends the merge when so many tensors were done."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def advanced(self, done_bytes: int) -> None:
        super().advanced(done_bytes)
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_what_is_whole_is_kept_and_the_rest_is_done(tmp_path: Path, after: int) -> None:
    pair_ = pair(tmp_path)
    expected = [digests(one.path) for one in average(tmp_path / "whole", pair_, -0.5, 1.5)]
    with pytest.raises(KeyboardInterrupt):
        average(tmp_path / "out", pair_, -0.5, 1.5, watcher=Ending(after))
    partial = tmp_path / "out/alpha=1.5.partial"
    assert [one.name for one in sorted((tmp_path / "out").iterdir())] == ["alpha=-0.5.partial", partial.name]
    assert len(list(partial.glob("*.safetensors"))) == after - 1
    assert list(partial.glob("*.safetensors.partial")) == []
    times = {one.name: one.stat().st_mtime_ns for one in partial.glob("*.safetensors")}
    watcher = Silent()
    outputs = average(tmp_path / "out", pair_, -0.5, 1.5, watcher=watcher)
    assert [digests(one.path) for one in outputs] == expected
    assert watcher.done == watcher.total == 2 * 4000 * (4 - len(times))
    assert {name: (outputs[1].path / name).stat().st_mtime_ns for name in times} == times
    assert [len(one.record.changes) for one in outputs if one.record] == [4, 4]
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["alpha=-0.5", "alpha=1.5"]


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    pair_ = pair(tmp_path)
    (first,) = average(tmp_path / "out", pair_, 0.5)
    before = {one: one.stat().st_mtime_ns for one in first.path.iterdir()}
    watcher = Silent()
    average(tmp_path / "out", pair_, 0.5, 0.75, watcher=watcher)
    assert {one: one.stat().st_mtime_ns for one in first.path.iterdir()} == before
    assert watcher.done == watcher.total == 4 * 4000


def test_what_was_killed_with_its_name_and_its_journal_is_whole(tmp_path: Path) -> None:
    pair_ = pair(tmp_path)
    (output,) = average(tmp_path / "out", pair_, 0.5)
    names = sorted(one.name for one in output.path.iterdir())
    (output.path / "journal.jsonl").write_text("{}\n")
    average(tmp_path / "out", pair_, 0.5)
    assert sorted(one.name for one in output.path.iterdir()) == names


@pytest.mark.parametrize("size", [None, 100])
def test_what_was_cut_since_does_not_pass_for_whole(tmp_path: Path, size: int | None) -> None:
    pair_ = pair(tmp_path)
    (output,) = average(tmp_path / "out", pair_, 0.5)
    path = output.path / "model-00002-of-00004.safetensors"
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)
    with pytest.raises(OutputTaken, match=r"model-00002-of-00004\.safetensors: is not as merge\.json says"):
        average(tmp_path / "out", pair_, 0.5)


KILLED = """
import sys
from pathlib import Path
from tests.rl_client.merge.checkpoints import Silent, average
class Slow(Silent):
    def advanced(self, done_bytes):
        print("done", flush=True)
        sys.stdin.readline()
average(Path(sys.argv[3]), [Path(sys.argv[1]), Path(sys.argv[2])], 0.5, watcher=Slow())
"""


def test_a_merge_that_is_killed_goes_on(tmp_path: Path) -> None:
    pair_ = pair(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, *map(str, pair_), str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        for _ in range(2):
            assert process.stdout.readline() == "done\n"
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        partial = tmp_path / "out/alpha=0.5.partial"
        deadline = time.monotonic() + 20
        while (partial / "journal.jsonl").read_text().count("\n") < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(OutputTaken, match="another process is writing there"):
            average(tmp_path / "out", pair_, 0.5)
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "out/alpha=0.5").exists()
    assert [one.name for one in partial.glob("*.safetensors.partial")] == ["model-00003-of-00004.safetensors.partial"]
    watcher = Silent()
    (output,) = average(tmp_path / "out", pair_, 0.5, watcher=watcher)
    assert watcher.done == 2 * 4000
    assert as_bytes(read(output.path)) == as_bytes(read(average(tmp_path / "whole", pair_, 0.5)[0].path))


def interrupted(folder: Path, pair_: list[Path]) -> Path:
    with pytest.raises(KeyboardInterrupt):
        average(folder, pair_, 0.5, watcher=Ending(3))
    return folder / "alpha=0.5.partial"


@pytest.mark.parametrize("torn", ['{"file": "model-00004-of-0', "", "\n\n{}\n"])
def test_a_torn_line_of_the_journal_is_passed_over(tmp_path: Path, torn: str) -> None:
    pair_ = pair(tmp_path)
    partial = interrupted(tmp_path / "out", pair_)
    with (partial / "journal.jsonl").open("a") as journal:
        journal.write(torn)
    (output,) = average(tmp_path / "out", pair_, 0.5)
    assert as_bytes(read(output.path)) == as_bytes(read(average(tmp_path / "whole", pair_, 0.5)[0].path))


@pytest.mark.parametrize("size", [None, 100])
def test_a_file_that_goes_while_others_are_made_leaves_no_name_to_the_rest(tmp_path: Path, size: int | None) -> None:
    pair_ = pair(tmp_path)
    partial = interrupted(tmp_path / "out", pair_)
    first = partial / "model-00001-of-00004.safetensors"

    class Losing(Silent):
        def advanced(self, done_bytes: int) -> None:
            first.unlink(missing_ok=True) if size is None else os.truncate(first, size)

    with pytest.raises(CannotWrite):
        average(tmp_path / "out", pair_, 0.5, watcher=Losing())
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["alpha=0.5.partial"]
    (output,) = average(tmp_path / "out", pair_, 0.5)
    assert as_bytes(read(output.path)) == as_bytes(read(average(tmp_path / "whole", pair_, 0.5)[0].path))


def test_a_file_that_is_not_as_the_journal_says_is_made_again(tmp_path: Path) -> None:
    pair_ = pair(tmp_path)
    partial = interrupted(tmp_path / "out", pair_)
    first = partial / "model-00001-of-00004.safetensors"
    os.truncate(first, 100)
    (output,) = average(tmp_path / "out", pair_, 0.5)
    assert as_bytes(read(output.path)) == as_bytes(read(average(tmp_path / "whole", pair_, 0.5)[0].path))


def test_what_is_of_other_checkpoints_is_left_alone(tmp_path: Path) -> None:
    pair_ = pair(tmp_path)
    partial = interrupted(tmp_path / "out", pair_)
    (pair_[0] / "model-00001-of-00004.safetensors").touch()
    with pytest.raises(OutputTaken, match="has an interrupted merge of other checkpoints"):
        average(tmp_path / "out", pair_, 0.5)
    assert partial.exists()
    (output,) = average(tmp_path / "done", pair_, 0.5)
    (pair_[0] / "model-00001-of-00004.safetensors").touch()
    with pytest.raises(OutputTaken, match="is there already, merged from other checkpoints"):
        average(tmp_path / "done", pair_, 0.5)
    assert output.path.exists()


def test_what_was_refused_before_a_file_was_whole_holds_up_no_other_merge(tmp_path: Path) -> None:
    pair_ = pair(tmp_path)
    sound = (pair_[1] / "model-00001-of-00004.safetensors").read_bytes()
    (pair_[1] / "model-00001-of-00004.safetensors").write_bytes(sound[:-2] + b"\xff\xff")
    with pytest.raises(NotFinite, match="holds 1 NaN"):
        average(tmp_path / "out", pair_, 0.5)
    (pair_[1] / "model-00001-of-00004.safetensors").write_bytes(sound)
    (output,) = average(tmp_path / "out", pair_, 0.5)
    assert as_bytes(read(output.path)) == as_bytes(read(average(tmp_path / "whole", pair_, 0.5)[0].path))


def test_what_another_process_has_written_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """Between a look at what is there and the lock."""
    pair_ = pair(tmp_path)
    with opened(pair_, None, [of_alpha(0.5)], tmp_path / "out") as plan:
        names = [Output(tmp_path / "out/alpha=0.5", plan.identity(plan.recipes[0])) for _ in range(2)]
        interrupted(tmp_path / "out", pair_)
        with pytest.raises(OutputTaken, match="has just written there"), names[0].begun():
            pass
        average(tmp_path / "out", pair_, 0.5)
        with pytest.raises(OutputTaken, match="has just written there"), names[1].begun():
            pass
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["alpha=0.5"]


def test_what_is_given_up_is_not_brought_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is slow holds up the end of a merge by no more than what it is at."""
    synced: list[str] = []
    ended = threading.Event()
    monkeypatch.setattr(run, "_SYNC_BYTES", 1)

    def sync(shard: Shard) -> None:
        synced.append(shard.path.name)
        assert ended.wait(20)

    def cancel(reading: Reading) -> None:
        ended.set()

    monkeypatch.setattr(Shard, "sync", sync)
    monkeypatch.setattr(Reading, "cancel", cancel)
    shapes = {f"layer.{number}": (40, 50) for number in range(8)}
    pair_ = [write(tmp_path / name, tensors(seed, **shapes)) for seed, name in enumerate(("low", "high"))]
    with pytest.raises(KeyboardInterrupt):
        average(tmp_path / "out", pair_, 0.5, watcher=Ending(6))
    assert synced in ([], ["model.safetensors"])


@pytest.mark.parametrize("name", ["alpha=0.5", "alpha=0.5.partial"])
def test_a_folder_that_is_no_merge_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "out" / name).mkdir(parents=True)
    (tmp_path / "out" / name / "thesis.tex").write_text("x")
    with pytest.raises(OutputTaken, match="is there already"):
        average(tmp_path / "out", pair(tmp_path), 0.5)
    assert (tmp_path / "out" / name / "thesis.tex").read_text() == "x"


def test_a_link_that_leads_nowhere_is_told_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/alpha=0.5").symlink_to("nowhere")
    with pytest.raises(OutputTaken, match="is there already"):
        average(tmp_path / "out", pair(tmp_path), 0.5)
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["alpha=0.5"]


def test_a_folder_that_is_given_its_name_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair_ = pair(tmp_path)
    partial = interrupted(tmp_path / "out", pair_)
    read_bytes = Path.read_bytes

    def renamed_first(path: Path) -> bytes:
        if path == partial / "journal.jsonl" and partial.exists():
            partial.rename(tmp_path / "out/alpha=0.5")
        return read_bytes(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", renamed_first)
        with opened(pair_, None, [of_alpha(0.5)], tmp_path / "out") as plan:
            output = Output(tmp_path / "out/alpha=0.5", plan.identity(plan.recipes[0]))
    with pytest.raises(OutputTaken, match="has just written there"), output.begun():
        pass
    assert not partial.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MiB."""
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


@pytest.mark.jail
def test_a_disk_that_fills_up_ends_the_merge_and_room_lets_it_go_on(tmp_path: Path, small_disk: Path) -> None:
    pair_ = pair(tmp_path)

    class Filling(Silent):
        def advanced(self, done_bytes: int) -> None:
            super().advanced(done_bytes)
            if self.done == 2 * 4000:
                with (small_disk / "filler").open("wb") as file, pytest.raises(OSError, match="No space left"):
                    while True:
                        os.write(file.fileno(), bytes(2**14))

    with pytest.raises(CannotWrite, match="No space left on device; what is whole is kept"):
        average(small_disk, pair_, 0.5, watcher=Filling())
    assert sorted(one.name for one in small_disk.iterdir()) == ["alpha=0.5.partial", "filler"]
    assert list(small_disk.glob("*/*.safetensors.partial")) == []
    (small_disk / "filler").unlink()
    watcher = Silent()
    (output,) = average(small_disk, pair_, 0.5, watcher=watcher)
    assert watcher.total < 4 * 4000
    assert as_bytes(read(output.path)) == as_bytes(read(average(tmp_path / "whole", pair_, 0.5)[0].path))


@pytest.mark.jail
@pytest.mark.parametrize("name", ["model-00004-of-00004.safetensors", "model-00004-of-00004.safetensors.partial"])
def test_what_a_kill_has_left_is_room(tmp_path: Path, small_disk: Path, name: str) -> None:
    """33 MB are to be free: what the killed merge was writing, or had not noted yet, goes first."""
    pair_ = pair(tmp_path)
    (interrupted(small_disk, pair_) / name).write_bytes(bytes(20 * 2**20))
    (output,) = average(small_disk, pair_, 0.5)
    assert as_bytes(read(output.path)) == as_bytes(read(average(tmp_path / "whole", pair_, 0.5)[0].path))


@pytest.mark.jail
def test_too_small_a_disk_is_told_before_anything_is_written(tmp_path: Path, small_disk: Path) -> None:
    with pytest.raises(CannotWrite, match=r"0\.07 GB are needed there, and 0\.05 GB are free"):
        average(small_disk, pair(tmp_path), 0.5, 0.6)
    assert list(small_disk.iterdir()) == []


def test_what_the_disk_has_lost_meanwhile_is_told_at_the_end(tmp_path: Path) -> None:
    """The kernel tells of it once: to who brings the first part of a file to the disk while the rest is made."""
    aside = tmp_path / "one.safetensors.partial"
    # Nothing of it can be brought to a disk.
    aside.symlink_to("/dev/null")
    shard = Shard(tmp_path / "one.safetensors", b"head")
    shard.sync()
    with (tmp_path / "sound").open("wb") as sound:
        os.dup2(sound.fileno(), shard._file.fileno())
    with pytest.raises(CannotWrite, match=r"one\.safetensors: .*the same command goes on"):
        shard.close()
    shard.drop()
    assert [one.name for one in tmp_path.iterdir()] == ["sound"]


def test_a_folder_that_cannot_be_looked_into_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="File name too long"):
        average(tmp_path / ("x" * 300), pair(tmp_path), 0.5)


def test_a_disk_that_takes_nothing_any_more_is_told_by_its_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux goes on with a broken file system as one that is only read."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    def fail(_: int) -> None:
        monkeypatch.setattr(Path, "unlink", refuse)
        raise OSError(errno.EIO, "Input/output error")

    class Breaking(Silent):
        def advanced(self, done_bytes: int) -> None:
            monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(CannotWrite, match="Input/output error; what is whole is kept"):
        average(tmp_path / "out", pair(tmp_path), 0.5, watcher=Breaking())


def test_a_folder_of_another_form_is_not_taken_for_a_merge(tmp_path: Path) -> None:
    (tmp_path / "alpha=1").write_text("")
    with pytest.raises(OutputTaken):
        Output(tmp_path / "alpha=1", "sha256:0")
