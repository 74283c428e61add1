"""Files of lines that grow, on a disk that does not."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rl_client.datasets.base import DatasetError
from rl_client.datasets.lines import Lines


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: as on a disk that is full, what fits is written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_lines_that_do_not_fit_are_not_there_and_later_ones_are(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    noted: list[tuple[bytes, int]] = []
    with Lines(path, lambda line, start: noted.append((line.strip(), start)), whole="lines", writer="test") as lines:
        lines.add(b"first")
        assert lines.at(0) == b"first\n"
        with (
            room(10),
            pytest.raises(
                DatasetError, match=r"lines\.jsonl: File too large; what was done is kept, and the same command goes on"
            ),
        ):
            lines.add(b"second", b"third")
        assert path.read_bytes() == b"first\n"
        lines.add(b"fourth")
        assert lines.at(6) == b"fourth\n"
    assert path.read_bytes() == b"first\nfourth\n"
    assert noted == [(b"first", 0), (b"fourth", 6)]
