"""Rows of parquet, JSON lines and Arrow files, streamed: a few at a time, and only the columns asked for.

One row of a data set of programs may hold a hundred megabytes of tests, so what is in memory at once is counted in
bytes: about `BATCH_BYTES` of rows, or one row where that alone is more. A row is decoded when it is loaded, so that
rows passed over cost little, and a row that cannot be decoded fails alone.

Knows formats, not data sets. Needs pyarrow (the extra `datasets`) for all but plain and gzip JSON lines.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rl_client.datasets.base import DatasetError
from rl_client.datasets.row import RowError, parse_json
from rl_client.extras import install

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BATCH_BYTES = 16 * 2**20
_MOST_ROWS = 256

#: A line of JSON beyond this is passed over: no row of any known set comes near it, and a whole file without line ends
#: would fill the memory.
LINE_BYTES = 2**30

_PARQUET = (".parquet",)
_ARROW = (".arrow", ".feather", ".ipc")
_LINES = (".jsonl", ".ndjson", ".jsonlines")
_PACKED = ("", ".gz", ".zst")

KNOWN = (*_PARQUET, *_ARROW, *(f"{_LINES[0]}{packed}" for packed in _PACKED))


@dataclass(frozen=True, slots=True)
class Record:
    """A row that was found but not yet decoded."""

    path: Path
    number: int
    """Position in its file, from 0; blank lines do not count."""
    load: Callable[[], dict[str, Any]]
    """Decodes it. Raises RowError. To be called before the next record is asked for."""
    done_bytes: int
    """How far into the file the row lies: an estimate, for progress."""


def read_rows(path: Path, columns: Collection[str]) -> Iterator[Record]:
    """The rows of a file, in its order.

    Raises DatasetError where the file cannot be read (on), is of no known format or has none of the columns.
    """
    name = path.name.lower()
    try:
        if name.endswith(_PARQUET):
            yield from _parquet(path, columns)
        elif name.endswith(_ARROW):
            yield from _arrow(path, columns)
        elif name.endswith(tuple(ending + packed for ending in _LINES for packed in _PACKED)):
            yield from _json_lines(path)
        else:
            raise DatasetError(path, f"of no known format; known are {', '.join(KNOWN)}")
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(path, _first_line(error)) from error


def _require_pyarrow(path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise DatasetError(path, f"reading this format is not installed: {install('datasets')}") from None


def _parquet(path: Path, columns: Collection[str]) -> Iterator[Record]:
    _require_pyarrow(path)
    import pyarrow as pa
    import pyarrow.parquet as pq

    size, number = path.stat().st_size, 0
    try:
        # Neither mapped nor read ahead: either would hold whole column chunks, which are gigabytes in sets with
        # one row group a file.
        with pq.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=2**20) as file:
            chosen = _chosen(path, file.schema_arrow.names, columns)
            for group in range(file.metadata.num_row_groups):
                rows = _rows_at_once(file.metadata.row_group(group), chosen)
                for batch in file.iter_batches(rows, row_groups=[group], columns=chosen, use_threads=False):
                    for index in range(batch.num_rows):
                        number += 1
                        yield Record(
                            path, number - 1, partial(_load, batch, index), size * number // file.metadata.num_rows
                        )
    except pa.ArrowException as error:
        raise DatasetError(path, f"cannot be read on from row {number}: {_first_line(error)}") from error


def _rows_at_once(group: pq.RowGroupMetaData, chosen: Collection[str]) -> int:
    """Rows that come to about BATCH_BYTES, by the row group's own account."""
    size: int = 0
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema.partition(".")[0] in chosen:
            size += column.total_uncompressed_size
    return max(1, min(_MOST_ROWS, group.num_rows * BATCH_BYTES // max(size, 1)))


def _arrow(path: Path, columns: Collection[str]) -> Iterator[Record]:
    """The IPC file format (Feather 2) or stream (as `datasets` caches them). A batch that is compressed is unpacked
    whole."""
    _require_pyarrow(path)
    import pyarrow as pa

    size, number = path.stat().st_size, 0
    try:
        with pa.memory_map(str(path)) as source:
            is_file = source.read(6) == b"ARROW1"
            source.seek(0)
            schema = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source).schema
            chosen = _chosen(path, schema.names, columns)
            source.seek(0)
            options = pa.ipc.IpcReadOptions(included_fields=[schema.names.index(name) for name in chosen])
            for batch in _batches(source, is_file, options):
                done = source.tell() if not is_file else size
                for index in range(batch.num_rows):
                    number += 1
                    yield Record(path, number - 1, partial(_load, batch, index), done)
    except pa.ArrowException as error:
        raise DatasetError(path, f"cannot be read on from row {number}: {_first_line(error)}") from error


def _batches(source: pa.MemoryMappedFile, is_file: bool, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if is_file:
        reader = pa.ipc.open_file(source, options=options)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)
    else:
        yield from pa.ipc.open_stream(source, options=options)


def _chosen(path: Path, names: list[str], columns: Collection[str]) -> list[str]:
    chosen = [name for name in names if name in columns]
    if not chosen:
        raise DatasetError(path, f"has none of the columns {', '.join(columns)}; it has {', '.join(names)}")
    return chosen


def _load(batch: pa.RecordBatch, index: int) -> dict[str, Any]:
    try:
        row: dict[str, Any] = batch.slice(index, 1).to_pylist()[0]
    except UnicodeDecodeError as error:
        raise RowError("undecodable", f"a column is not UTF-8: {error.reason}") from None
    # pyarrow's own errors are ValueErrors, TypeErrors and the like.
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
        raise RowError("undecodable", _first_line(error)) from None
    return row


def _json_lines(path: Path) -> Iterator[Record]:
    with io.BufferedReader(path.open("rb", buffering=0), 2**20) as raw, _unpacked(path, raw) as lines:
        number = 0
        while line := lines.readline(LINE_BYTES):
            if len(line) == LINE_BYTES and not line.endswith(b"\n"):
                _pass_over_line(lines)
                line = b""
            if number == 0:
                line = line.removeprefix(b"\xef\xbb\xbf")
                if line.startswith(b"["):
                    raise DatasetError(path, "holds a JSON array, not a row a line (jq -c '.[]' turns it into that)")
            if line.isspace():
                continue
            yield Record(path, number, partial(_parse, line), raw.tell())
            number += 1


def _pass_over_line(lines: io.BufferedIOBase) -> None:
    while (piece := lines.readline(BATCH_BYTES)) and not piece.endswith(b"\n"):
        pass


def _unpacked(path: Path, raw: io.BufferedReader[Any]) -> io.BufferedIOBase:
    match path.suffix.lower():
        case ".gz":
            return gzip.open(raw)
        case ".zst":
            _require_pyarrow(path)
            import pyarrow as pa

            # The stubs do not know that Arrow's files are Python's raw files, too.
            return io.BufferedReader(cast(io.RawIOBase, pa.CompressedInputStream(raw, "zstd")), 2**20)
        case _:
            return raw


def _parse(line: bytes) -> dict[str, Any]:
    if not line:
        raise RowError("undecodable", f"the line is longer than {LINE_BYTES // 2**20} MiB")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise RowError("undecodable", f"the line is not UTF-8: {error.reason} at byte {error.start}") from None
    row = parse_json(text, "the line")
    if not isinstance(row, dict):
        raise RowError("malformed", f"the line must hold an object, not {type(row).__name__}")
    return row


def _first_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error) or type(error).__name__).partition("\n")[0]
