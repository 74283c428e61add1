"""What comparing 64 MB costs, for each text checker and for many shapes of text: wall ms and CPU ms, and peak memory.

    python bench/compare.py [--mb 64] [CHECKER ...]

The ratio column compares with reading both texts once by hashing them (CRC-32), measured in the same run. MB/8
is the peak of extra memory on an eighth of the texts.
"""

from __future__ import annotations

import argparse
import mmap
import resource
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from sandbox.checkers import Checker, Exact, Lcb, Lines, Tokens

T = TypeVar("T")


@dataclass(frozen=True)
class Shape:
    name: str
    output: bytes
    """Repeated up to the size."""
    expected: bytes
    output_end: bytes = b""
    expected_end: bytes = b""


def blocks_of_lines(line: Callable[[int], bytes]) -> bytes:
    return b"".join(map(line, range(5000)))


SHAPES = (
    Shape("equal", b"1 2 3\n", b"1 2 3\n"),
    Shape("equal, one token", b"x", b"x"),
    Shape("layout everywhere, 1-byte tokens", b"1\n2\r\n3\t", b"1 2  3\n"),
    Shape("layout everywhere, 7-byte tokens", b"1234567\r\n", b"1234567 \n"),
    Shape("line ends everywhere", b"1 2 \n", b"1 2\r\n"),
    Shape("line ends, 40-byte lines", b"x" * 38 + b"\r\n", b"x" * 38 + b" \n"),
    Shape("indented everywhere", b" 1 2\n", b"1 2\t\n"),
    Shape("one line, spaces doubled", b"1  ", b"1\t "),
    Shape("newlines only, then a token", b"\r\n", b" \n", b"1", b"1"),
    Shape("case everywhere", b"yes no\n", b"YES NO\n"),
    Shape("differ at first byte", b"1 2 3\n", b"2 2 3\n"),
    Shape("differ at last byte", b"1 2 3\n", b"1 2 3\n", b"4", b"5"),
    Shape("layout, differ at last byte", b"1\n2\r\n3\t", b"1 2  3\n", b"4", b"5"),
    Shape("spaces against one token", b" ", b"1", b"", b""),
    Shape("one token, differ at last byte", b"x", b"x", b"y", b"z"),
    Shape("equal start, then only newlines", b"\n", b"1 2 3\n"),
    Shape("UTF-8 words, layout everywhere", "né\u00a0à\r\n".encode(), "né\u00a0à \n".encode()),
    Shape(
        "floats, other digits everywhere",
        blocks_of_lines(lambda i: b"%d.%05d1\n" % (i, i)),
        blocks_of_lines(lambda i: b"%d.%05d2\n" % (i, i)),
    ),
    Shape("numbers written otherwise", b"10.50\n", b"10.5 \n"),
)

CHECKERS: dict[str, Checker] = {
    "tokens": Tokens(),
    "tokens/case": Tokens(case_sensitive=False),
    "tokens/float": Tokens(float_absolute=1e-4, float_relative=1e-4),
    "lines": Lines(),
    "exact": Exact(),
    "lcb": Lcb(),
}


@contextmanager
def mapped(data: bytes) -> Iterator[memoryview]:
    with mmap.mmap(-1, len(data)) as mapping:
        mapping.write(data)
        with memoryview(mapping) as view:
            yield view


def timed(call: Callable[[], T]) -> tuple[float, float, T]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3, result


def crc32_ms(output: memoryview, expected: bytes) -> float:
    return timed(lambda: (zlib.crc32(output), zlib.crc32(expected)))[1]


def row(shape: Shape, name: str, output: memoryview, expected: bytes, crc_ms: float) -> str:
    checker = CHECKERS[name]
    wall_ms, cpu_ms, outcome = timed(lambda: checker.check(output, expected))
    # An eighth tells memory that grows with the text from memory that does not; tracing makes it slow.
    eighth, eighth_expected = output[: len(output) // 8], expected[: len(expected) // 8]
    tracemalloc.start()
    checker.check(eighth, eighth_expected)
    extra_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (
        f"{shape.name:34} {name:13} {outcome.verdict:13} {wall_ms:8.1f} {cpu_ms:8.1f} "
        f"{cpu_ms / crc_ms:7.1f} {extra_bytes / 2**20:7.1f}"
    )


def rows(names: list[str], size: int) -> Iterator[str]:
    for shape in SHAPES:
        # As many units on both sides, so that the longer pattern decides the length.
        count = (size - 8) // max(len(shape.output), len(shape.expected))
        expected = shape.expected * count + shape.expected_end
        with mapped(shape.output * count + shape.output_end) as output:
            crc_ms = crc32_ms(output, expected)
            for name in names:
                yield row(shape, name, output, expected, crc_ms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=64)
    parser.add_argument("checkers", nargs="*", metavar="CHECKER", help=", ".join(CHECKERS))
    arguments = parser.parse_args()
    names = arguments.checkers or list(CHECKERS)
    print(f"{arguments.mb} MB of output")
    print(f"{'shape':34} {'checker':13} {'verdict':13} {'wall ms':>8} {'CPU ms':>8} {'x CRC':>7} {'MB/8':>7}")
    for row in rows(names, arguments.mb * 2**20):
        print(row, flush=True)
    print(f"peak RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, texts included")


if __name__ == "__main__":
    main()
