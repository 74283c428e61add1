"""Reading rows: formats, compressions, columns, batches by size, and files that break off."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from rl_client.datasets import rows as rows_module
from rl_client.datasets.base import DatasetError
from rl_client.datasets.row import RowError
from rl_client.datasets.rows import read_rows

ROWS = [{"id": f"p{n}", "tests": [{"input": str(n), "output": None}], "code": "x" * 100} for n in range(7)]
WANTED = [{key: value for key, value in row.items() if key != "code"} for row in ROWS]
TEXT = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def load(path: Path) -> list[dict[str, Any]]:
    """Every row, by the columns of WANTED."""
    found = []
    for number, record in enumerate(read_rows(path, ("id", "tests"))):
        assert (record.path, record.number) == (path, number)
        assert 0 <= record.done_bytes <= path.stat().st_size
        row = record.load()
        found.append({name: row[name] for name in ("id", "tests")})
    return found


def write_parquet(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=3)


def write_stream(path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def write_zstd(path: Path) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(TEXT)


WRITERS: dict[str, Callable[[Path], object]] = {
    "rows.parquet": write_parquet,
    "rows.arrow": write_stream,
    "rows.feather": lambda path: pyarrow.feather.write_feather(pa.Table.from_pylist(ROWS), str(path), chunksize=3),
    "rows.jsonl": lambda path: path.write_bytes(TEXT),
    "rows.ndjson": lambda path: path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace(b"\n", b"\r\n\r\n")),
    "unended.jsonl": lambda path: path.write_bytes(TEXT.rstrip()),
    "rows.jsonl.gz": lambda path: path.write_bytes(gzip.compress(TEXT[:300]) + gzip.compress(TEXT[300:])),
    "rows.jsonl.zst": write_zstd,
    "ROWS.JSONL": lambda path: path.write_bytes(TEXT),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    assert load(tmp_path / name) == WANTED


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.feather"])
def test_columns_not_asked_for_are_not_read(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    assert {tuple(record.load()) for record in read_rows(tmp_path / name, ("id", "absent"))} == {("id",)}


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.feather"])
def test_a_file_without_any_of_the_columns_is_another_set(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    with pytest.raises(DatasetError, match="has none of the columns question, answer; it has id, tests, code"):
        list(read_rows(tmp_path / name, ("question", "answer")))


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.feather", "rows.jsonl.gz", "rows.jsonl.zst"])
def test_a_file_that_breaks_off_is_reported_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DatasetError, match=name):
        load(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.csv", b"a,b\n", "of no known format; known are .parquet, .arrow"),
        ("rows.jsonl", b'[{"id": 1}]', "holds a JSON array, not a row a line"),
        ("rows.jsonl.gz", b"plain", "Not a gzipped file"),
        ("rows.parquet", b"plain", "Parquet file size is 5 bytes"),
        ("rows.parquet", b"", "Parquet file size is 0 bytes"),
        ("rows.arrow", b"plain text", "cannot be read on from row 0"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        load(tmp_path / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="No such file"):
        load(tmp_path / "rows.jsonl")


def test_an_empty_file_of_lines_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").touch()
    assert load(tmp_path / "rows.jsonl") == []


def test_a_bad_line_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": 1}\n{"id": \n"text"\n{"id": "\xff"}\n' + b"[" * 100_000 + b'\n{"id": 2}\n')

    found: list[Any] = []
    for record in read_rows(path, ("id",)):
        try:
            found.append(record.load())
        except RowError as error:
            found.append((error.fault, error.detail))

    assert found == [
        {"id": 1},
        ("undecodable", "the line: not JSON: Expecting value: line 2 column 1 (char 8)"),
        ("malformed", "the line must hold an object, not str"),
        ("undecodable", "the line is not UTF-8: invalid start byte at byte 8"),
        ("undecodable", "the line: JSON nested too deeply"),
        {"id": 2},
    ]


def test_a_line_beyond_the_bound_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "LINE_BYTES", 2**20)
    monkeypatch.setattr(rows_module, "BATCH_BYTES", 1000)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": "' + b"x" * (2**20 - 11) + b'"}\n{"id": "' + b"x" * 2**21 + b'"}\n{"id": 3}\n')

    first, second, third = read_rows(path, ("id",))

    assert len(first.load()["id"]) == 2**20 - 11
    with pytest.raises(RowError, match="the line is longer than 1 MiB"):
        second.load()
    assert third.load() == {"id": 3}


def test_batches_hold_as_many_rows_as_their_size_allows(tmp_path: Path) -> None:
    """One row group of 40 rows of 2 MiB is read eight rows at a time, not as one batch of 80 MiB.

    Pages are kept small, since a page is the least that can be read of a column.
    """
    path = tmp_path / "rows.parquet"
    big = [{"id": f"{n}" * 2**21, "code": "x"} for n in range(10)] * 4
    pq.write_table(pa.Table.from_pylist(big), path, use_dictionary=False, write_batch_size=1)

    before = pa.total_allocated_bytes()
    peak = 0
    for record in read_rows(path, ("id",)):
        record.load()
        peak = max(peak, pa.total_allocated_bytes() - before)

    assert 2 * 2**20 <= peak <= 40 * 2**20


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    write_parquet(tmp_path / "rows.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DatasetError, match=r"pip install 'rkgrade\[datasets\]'"):
        load(tmp_path / "rows.parquet")
