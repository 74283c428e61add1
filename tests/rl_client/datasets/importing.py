"""Writes rows as the data sets are published, and imports them through the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from rl_client.cli import build
from service.contract import Problem, parse_problem

Rows = Iterable[Mapping[str, Any]]

FORMS = ("parquet", "jsonl")


def write(path: Path, rows: Rows) -> Path:
    """Rows in the format that the file's name ends in."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to."""

    status: int
    stderr: str
    problems: list[Problem]
    mapping: list[dict[str, Any]]
    skipped: list[dict[str, Any]]

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Fault and reason of each skipped row."""
        return [(row["fault"], row["reason"]) for row in self.skipped]


def import_files(name: str, directory: Path, *arguments: str | Path) -> Imported:
    """`rkgrade import NAME`, with all its files in `directory`."""
    out, mapping, skipped = (directory / name for name in ("out.jsonl", "map.jsonl", "skipped.jsonl"))
    command = ["import", name, *map(str, arguments)]
    files = ["--out", str(out), "--map", str(mapping), "--skipped", str(skipped)]
    result = CliRunner().invoke(build(), command + files)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Imported(
        status=result.exit_code,
        stderr=result.stderr,
        problems=[parse_problem(line) for line in _lines(out)],
        mapping=[json.loads(line) for line in _lines(mapping)],
        skipped=[json.loads(line) for line in _lines(skipped)],
    )


def import_rows(name: str, directory: Path, rows: Rows, *options: str, form: str = "parquet") -> Imported:
    """The same of rows that are written first."""
    return import_files(name, directory, write(directory / f"rows.{form}", rows), *options)


def verdicts(name: str, directory: Path, row: Mapping[str, Any], url: str, *programs: str) -> list[str]:
    """What the grader says of Python programs on a row that is put to it."""
    mapping = directory / "map.jsonl"
    path = write(directory / "rows.parquet", [row])
    done = CliRunner().invoke(build(), ["import", name, str(path), "--to", url, "--map", str(mapping)])
    assert done.exit_code == 0, done.stderr
    problem = json.loads(mapping.read_text())["problem_id"]
    found = []
    for program in programs:
        request = {"problem": problem, "language": "python", "source": program}
        found.append(str(httpx.post(f"{url}/grade", json=request, timeout=120).json()["verdict"]))
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
