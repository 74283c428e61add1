"""Where a merged checkpoint is written, so that what looks whole is whole.

    DIR/alpha=1.5.partial/                         until everything is there, then renamed to DIR/alpha=1.5
        journal.jsonl                              the plan's hash; then a line for each file that is whole
        model-00001-of-00002.safetensors           written, on the disk, renamed; then its line
        model-00002-of-00002.safetensors.partial   being written

Each rename follows an fsync of what is renamed, and is followed by one of the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from rl_client.merge.errors import CannotWrite, OutputTaken
from rl_client.merge.records import CARD, RECORD, FileRecord, MergeRecord, PlanRecord, ShardRecord

PARTIAL = ".partial"
JOURNAL = "journal.jsonl"
_JUST_WRITTEN = "another process has just written there; the same command goes on"


class Output:
    """The folder of one merged checkpoint."""

    def __init__(self, path: Path, plan: str) -> None:
        """`plan`: the hash of what is to be done to what; a folder of another plan is left alone (OutputTaken)."""
        self.path = path
        self._partial = path.with_name(path.name + PARTIAL)
        self.plan = plan
        self.done: dict[str, ShardRecord] = {}
        with _writing(path):
            self.record = self._finished()
            """Of what is there already, whole."""
            if self.record is None and self._partial.exists():
                self.done = self._journaled()

    @property
    def is_whole(self) -> bool:
        return self.record is not None

    @property
    def torn_bytes(self) -> int:
        """On the disk, of an interrupted merge: they go when it is gone on with."""
        torn = 0
        with _writing(self._partial):
            for one in self._torn:
                # Another process may be renaming them.
                with suppress(FileNotFoundError):
                    torn += one.stat().st_blocks * 512
        return torn

    @property
    def _torn(self) -> list[Path]:
        """The files of tensors that are not known to be whole, and what else was to get its name yet."""
        patterns = (f"*{PARTIAL}", "*.safetensors")
        found = (one for pattern in patterns for one in self._partial.glob(pattern))
        return [one for one in found if one.name not in self.done]

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Make the folder, or go on in it, with no other process in it. Raises OutputTaken, CannotWrite."""
        with _writing(self._partial):
            if self.path.exists():
                raise OutputTaken(self.path, _JUST_WRITTEN)
            self._partial.mkdir(parents=True, exist_ok=True)
            try:
                folder = os.open(self._partial, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                raise OutputTaken(self.path, _JUST_WRITTEN) from None
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputTaken(self._partial, "another process is writing there") from None
            with _writing(self._partial):
                self._check_unchanged(folder)
                self._begin_journal()
            yield
        finally:
            os.close(folder)

    def _check_unchanged(self, folder: int) -> None:
        """Raises OutputTaken where another process has written something since this one looked what there is."""
        same = self._partial.exists() and os.path.samestat(os.fstat(folder), self._partial.stat())
        if self.path.exists() or not same or self._journaled() != self.done:
            raise OutputTaken(self._partial, _JUST_WRITTEN)

    def _begin_journal(self) -> None:
        """The whole of it anew, since its last line may be torn."""
        for torn in self._torn:
            torn.unlink()
        lines = [one.model_dump_json() for one in (PlanRecord(plan=self.plan), *self.done.values())]
        aside = self._partial / f"{JOURNAL}{PARTIAL}"
        with aside.open("wb") as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._partial / JOURNAL)
        _sync_folder(self._partial)

    def shard(self, name: str, head: bytes) -> Shard:
        """Begin a file of tensors."""
        return Shard(self._partial / name, head)

    def add(self, record: ShardRecord) -> None:
        """Note that a file is whole."""
        with _writing(self._partial / JOURNAL), (self._partial / JOURNAL).open("ab") as journal:
            journal.write(record.model_dump_json().encode() + b"\n")
            journal.flush()
            os.fsync(journal.fileno())
        self.done[record.file] = record

    def finish(self, record: MergeRecord, files: Mapping[str, bytes]) -> None:
        """Add the files that are no tensors, and give the folder its name. The card is its readers' to write in; what
        the others hold, the record tells.
        """
        companions = {name: FileRecord.of(content) for name, content in files.items() if name != CARD}
        record = record.model_copy(update={"companions": companions})
        with _writing(self._partial):
            for name, written in record.outputs.items():
                if (self._partial / name).stat().st_size != written.bytes:
                    raise CannotWrite(self._partial / name, "was changed while others were made; merge anew")
            for name, content in {**files, RECORD: (record.model_dump_json(indent=1) + "\n").encode()}.items():
                with (self._partial / name).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            _sync_folder(self._partial)
            self._partial.rename(self.path)
            _sync_folder(self.path.parent)
            (self.path / JOURNAL).unlink()
        self.record = record

    def _finished(self) -> MergeRecord | None:
        # A link that leads nowhere would be in the way at the very end.
        if not os.path.lexists(self.path):
            return None
        try:
            record = MergeRecord.model_validate_json((self.path / RECORD).read_bytes())
        except (OSError, ValidationError):
            raise OutputTaken(self.path, "is there already, and is no merge: nothing is written over it") from None
        if record.plan != self.plan:
            reason = "is there already, merged from other checkpoints or otherwise: remove it, or choose another --out"
            raise OutputTaken(self.path, reason)
        for name, written in record.outputs.items():
            if not (self.path / name).is_file() or (self.path / name).stat().st_size != written.bytes:
                raise OutputTaken(self.path / name, f"is not as {RECORD} says: remove the folder, and merge anew")
        # Where the merge was killed right after the folder got its name.
        if (self.path / JOURNAL).exists():
            with _writing(self.path):
                (self.path / JOURNAL).unlink()
        return record

    def _journaled(self) -> dict[str, ShardRecord]:
        """The files that an interrupted merge has done; of a last line that is torn nothing."""
        try:
            first, *lines = (self._partial / JOURNAL).read_bytes().split(b"\n")
        except FileNotFoundError:
            # Of a folder that another process has just given its name nothing is found.
            if any(not one.name.endswith(PARTIAL) for one in self._partial.glob("*")):
                raise OutputTaken(self._partial, f"is there already, without {JOURNAL}: remove it") from None
            return {}
        except OSError as error:
            raise OutputTaken(self._partial, error.strerror or str(error)) from error
        try:
            plan = PlanRecord.model_validate_json(first).plan
        except ValidationError:
            plan = None
        # What was refused before a file was whole, for a NaN in a checkpoint, holds up no other merge.
        if plan is None or (plan != self.plan and len(lines) > 1):
            reason = "has an interrupted merge of other checkpoints, or otherwise: remove it, or choose another --out"
            raise OutputTaken(self._partial, reason)
        done = {}
        for line in lines[:-1]:
            try:
                record = ShardRecord.model_validate_json(line)
                whole = (self._partial / record.file).stat().st_size == record.written.bytes
            except (ValidationError, OSError):
                continue
            if whole:
                done[record.file] = record
        return done


class Shard:
    """A file of tensors being written; hashed as it is."""

    def __init__(self, path: Path, head: bytes) -> None:
        self.path = path
        self._aside = path.with_name(path.name + PARTIAL)
        self._hash = hashlib.sha256()
        self._bytes = 0
        self._lost: OSError | None = None
        with _writing(path):
            self._file = self._aside.open("wb", buffering=0)
        try:
            self.write(memoryview(head))
        except BaseException:
            self.drop()
            raise

    def write(self, content: memoryview) -> None:
        left = content
        self._hash.update(left)
        self._bytes += len(left)
        with _writing(self.path):
            while left:
                left = left[self._file.write(left) :]

    def sync(self) -> None:
        """What is written so far is on the disk now; if not, `close` tells. Others may write meanwhile."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            # The kernel tells of it once.
            self._lost = error

    def close(self) -> FileRecord:
        """The file is on the disk now, under its name."""
        with _writing(self.path):
            if self._lost is not None:
                raise self._lost
            os.fsync(self._file.fileno())
            self._file.close()
            self._aside.replace(self.path)
            _sync_folder(self.path.parent)
        return FileRecord(bytes=self._bytes, sha256=self._hash.hexdigest())

    def drop(self) -> None:
        """It will not be whole. Where the disk takes nothing any more it stays, until the merge is gone on with."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._aside.unlink(missing_ok=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(
            path, f"{error.strerror or error}; what is whole is kept, and the same command goes on"
        ) from error


def _sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
