"""Importing a parquet file shaped like CodeContests+: speed and peak memory.

    python bench/datasets.py [--quick] [--json FILE]

Makes a file of 1 GB (64 MB with --quick) in a temporary directory, imports it in a process of its own with the
problems going to /dev/null, as often as there are rounds, puts forty of them to a grader, and removes it. A row has
forty tests between ten bytes and half a megabyte, so that most bytes lie in few tests, a checker of its own, and
nine hundred submissions, which a reader passes over. All rows are in one row group, which is the worst case for memory.
The bytes are random digits, which Snappy cannot shrink.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from measure import CpuAccount, Report, options
from server import Server, serving

MB = 10**6
TESTS, SHORTEST, LONGEST = 40, 10, 500_000
CORRECT, INCORRECT, PROGRAM_BYTES = 309, 594, 1000

#: The goals: at least 50 MB/s, at most 1 GB.
MOST_S_PER_GB = 20.0
MOST_PEAK_MB = 1000.0

_DIGITS = bytes(b"0123456789 0123456789 0123456789\n"[byte % 33] for byte in range(256))

#: Each row's is another, and compiled when its problem is put.
_CHECKER = r"""
#include "testlib.h"
int main(int argc, char** argv) {
    registerTestlibCmd(argc, argv);
    long long seen = NUMBER;
    while (!ans.seekEof()) {
        std::string wanted = ans.readToken(), got = ouf.readToken();
        if (wanted != got) quitf(_wa, "token %lld", seen);
        seen++;
    }
    if (!ouf.seekEof()) quitf(_wa, "more than the answer");
    quitf(_ok, "%lld tokens", seen);
}
"""
#: Problems that are put to a grader.
PUT = 40

#: CPU seconds and the peak of this process alone: getrusage would count the memory of what it was forked from.
_IMPORT = """
import atexit, os, pathlib, sys
def tell():
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in status if line.startswith("VmHWM"))
    used = os.times()
    print(used.user + used.system, peak, file=sys.stderr)
atexit.register(tell)
from rl_client.cli import main
main()
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """What was made."""

    rows: int
    file_bytes: int
    test_bytes: int


def text(size: int) -> str:
    return os.urandom(size).translate(_DIGITS).decode()


def row(chance: random.Random, number: int) -> dict[str, Any]:
    sizes = [int(SHORTEST * (LONGEST / SHORTEST) ** chance.random()) for _ in range(TESTS)]
    programs = [{"language": "py3", "code": text(PROGRAM_BYTES)} for _ in range(CORRECT + INCORRECT)]
    return {
        "source": "Codeforces",
        "id": f"{number}_A",
        "title": f"Problem {number}",
        "description": text(2000),
        "time_limit": 2000,
        "memory_limit": 256,
        "validator": text(2000),
        "generator": text(2000),
        "generator_cmd": "./gen 1",
        "checker": _CHECKER.replace("NUMBER", str(number)),
        "correct_submissions": programs[:CORRECT],
        "incorrect_submissions": programs[CORRECT:],
        "test_cases": [{"input": text(size), "output": text(max(1, size // 4))} for size in sizes],
        "true_positive_rate": 0.9,
        "true_negative_rate": 0.9,
    }


def make(path: Path, size: int) -> Shape:
    chance, rows, test_bytes, all_bytes = random.Random(1), 0, 0, 0
    writer: pq.ParquetWriter | None = None
    # Snappy finds something in the programs and the short tests; so much on top makes the file as large as asked for.
    while all_bytes < size * 1.1:
        batch = pa.RecordBatch.from_pylist([row(chance, rows)])
        if writer is None:
            writer = pq.ParquetWriter(path, batch.schema)
        writer.write_batch(batch, row_group_size=2**20)
        rows += 1
        test_bytes += batch.column("test_cases").nbytes
        all_bytes += batch.nbytes
    assert writer is not None
    writer.close()
    return Shape(rows, path.stat().st_size, test_bytes)


@dataclass(frozen=True, slots=True)
class Import:
    """What one import took."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def imports(path: Path, count: int) -> Iterator[Import]:
    """Imports of the file, after one that is not counted, so that it is in the page cache."""
    for number in range(count + 1):
        took = imported(path, "--out", "/dev/null")
        if number > 0:
            yield took


def imported(path: Path, *to: str) -> Import:
    command = [sys.executable, "-c", _IMPORT, "import", "codecontests-plus", str(path), *to]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall_s = time.perf_counter() - start
    cpu_s, peak_kib = done.stderr.splitlines()[-1].split()
    return Import(wall_s, float(cpu_s), int(peak_kib) * 1024 / MB)


def stored_bytes(server: Server) -> int:
    """Of all problems, on the grader's disk."""
    return sum(one.stat().st_size for one in (server.data_dir / "problems").rglob("*") if one.is_file())


def main() -> None:
    chosen = options(__doc__)
    report = Report("datasets", chosen.quick)
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as name:
        path = Path(name) / "codecontests-plus.parquet"
        shape = make(path, (64 if chosen.quick else 1000) * MB)
        found = list(imports(path, 1 if chosen.quick else 5))
        with CpuAccount() as account, serving(Path(name)) as server:
            before = account.mark()
            put = imported(path, "--to", f"http://{server.host}:{server.port}", "--limit", str(PUT))
            put_cpu_s = account.mark().since(before).cpu_ms / 1000
            stored_mb = stored_bytes(server) / MB
    wall_s = statistics.median(one.wall_s for one in found)
    cpu_s = statistics.median(one.cpu_s for one in found)
    peak_mb = max(one.peak_mb for one in found)
    size_mb, tests_mb = shape.file_bytes / MB, shape.test_bytes / MB
    problems = min(PUT, shape.rows)
    put_mb = tests_mb * problems / shape.rows
    report.table(
        "Importing CodeContests+",
        ("file", "rows", "MB", "MB of tests", "wall s", "CPU s", "MB/s", "MB/CPU-s", "peak MB"),
        [
            [
                "one row group, Snappy",
                shape.rows,
                size_mb,
                tests_mb,
                wall_s,
                cpu_s,
                size_mb / wall_s,
                size_mb / cpu_s,
                peak_mb,
            ]
        ],
    )
    report.table(
        "Putting them to a grader on the same cores",
        ("problems", "wall s", "wall s each", "CPU s each", "MB stored", "of tests"),
        [[problems, put.wall_s, put.wall_s / problems, put_cpu_s / problems, stored_mb, stored_mb / put_mb]],
    )
    report.goal("time for a GB (50 MB/s)", wall_s / size_mb * 1000, MOST_S_PER_GB, " s")
    report.goal("peak resident memory", peak_mb, MOST_PEAK_MB, " MB")
    report.emit(chosen.json)


if __name__ == "__main__":
    main()
