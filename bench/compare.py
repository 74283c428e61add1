"""What comparing 64 MB costs, for each text checker and for many shapes of text, the worst that are known among them.

    python bench/compare.py [--quick] [--json FILE]

Each pair of texts is compared both ways round, and the dearer one counts. CPU and wall time are this process's, memory
is what its peak rises above what it holds with both texts in it. `--quick` takes 16 MB.
"""

from __future__ import annotations

import mmap
import random
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path

from measure import Cell, Cost, Report, options

from sandbox import prebuilt
from sandbox.checkers import Checker, Exact, Lcb, Lines, Tokens, native

#: Texts of fewer lines would be learned by heart by the processor.
RANDOM_LINES = 200_000


@dataclass(frozen=True)
class Shape:
    name: str
    output: bytes
    """Repeated as often as `expected`, until the longer one fills the size."""
    expected: bytes
    output_end: bytes = b""
    expected_end: bytes = b""


def at_random(name: str, pair: Callable[[random.Random], tuple[str, str]]) -> Shape:
    rng = random.Random(name)
    output, expected = zip(*(pair(rng) for _ in range(RANDOM_LINES)), strict=True)
    return Shape(f"at random: {name}", "".join(output).encode(), "".join(expected).encode())


def written_otherwise(rng: random.Random) -> tuple[str, str]:
    word = str(rng.randrange(1, 100))
    return rng.choice([word, f"+{word}", f"{word}.", f"0{word}", f"{word}.0", f"{word}e0"]), word


def numbers_and_layout(rng: random.Random) -> tuple[str, str]:
    output, expected = written_otherwise(rng)
    return output + rng.choice([" ", "\n", "  ", "\t", "\r\n"]), expected + rng.choice([" ", "\n"])


def numbers_a_line(rng: random.Random) -> tuple[str, str]:
    output, expected = written_otherwise(rng)
    return output + rng.choice(["\n", " \n", "\n "]), expected + "\n"


def numbers_of_other_scripts(rng: random.Random) -> tuple[str, str]:
    output, expected = written_otherwise(rng)
    output = "".join(chr(int(c) + rng.choice([0x660, 0xFF10])) if c.isdigit() else c for c in output)
    return rng.choice(["", "_"]) + output + "\n", expected + "\n"


def at_the_edge(rng: random.Random) -> tuple[str, str]:
    value = Decimal(rng.randrange(-2000, 2000)) / 1000
    return f"{value + rng.choice([1, -1]) * Decimal('0.000001')} ", f"{value} "


def long_digits(rng: random.Random) -> tuple[str, str]:
    word = f"{rng.uniform(1, 9):.{rng.randrange(22, 30)}e}"
    return word.replace("e", "0e") + " ", word + " "


def case_and_layout(rng: random.Random) -> tuple[str, str]:
    word = "".join(rng.choices("ab", k=rng.randrange(1, 4)))
    other = "".join(c.upper() if rng.random() < 0.5 else c for c in word)
    return other + rng.choice([" ", "\n", "  "]), word + rng.choice([" ", "\n"])


def ends_of_lines(rng: random.Random) -> tuple[str, str]:
    line = rng.choice(["", "a", " b", "c d"])
    ends = ["", " ", "\t", "\r"]
    return f"{line}{rng.choice(ends)}\n", f"{line}{rng.choice(ends)}\n"


SHAPES = (
    Shape("equal", b"1 2 3\n", b"1 2 3\n"),
    Shape("equal, one token", b"x", b"x"),
    Shape("differ at first byte", b"1 2 3\n", b"2 2 3\n"),
    Shape("differ at last byte", b"1 2 3\n", b"1 2 3\n", b"4", b"5"),
    Shape("one token, differ at last byte", b"x", b"x", b"y", b"z"),
    Shape("layout everywhere, 1-byte tokens", b"1\n2\r\n3\t", b"1 2  3\n"),
    Shape("layout everywhere, 7-byte tokens", b"1234567\r\n", b"1234567 \n"),
    Shape("layout, differ at last byte", b"1\n2\r\n3\t", b"1 2  3\n", b"4", b"5"),
    Shape("line ends everywhere", b"1 2 \n", b"1 2\r\n"),
    Shape("line ends, 40-byte lines", b"x" * 38 + b"\r\n", b"x" * 38 + b" \n"),
    Shape("indented everywhere", b"  1\n", b" 1\n"),
    Shape("one line, spaces doubled", b"1  ", b"1\t "),
    Shape("empty lines only, then a token", b"\r\n", b" \n", b"1", b"1"),
    Shape("spaces only, then a token", b" ", b"\t", b"1", b"1"),
    Shape("spaces against one token", b" ", b"1"),
    Shape("equal start, then only newlines", b"\n", b"1 2 3\n"),
    Shape("case everywhere", b"yes no\n", b"YES NO\n"),
    Shape("one token, case everywhere", b"X", b"x", b"y", b"z"),
    Shape("no UTF-8, line ends", b"\xff \n", b"\xff\t\n"),
    Shape("NULs, line ends", b"\0\n", b"\0 \n"),
    Shape("UTF-8 words, layout everywhere", "né\u00a0à\r\n".encode(), "né\u00a0à \n".encode()),
    Shape("wide spaces", "1\u3000".encode(), "1\u2003".encode()),
    Shape("1.0 for 1.00", b"1.0 ", b"1.00 "),
    Shape("1.0 for 1.00, a line each", b"1.0\n", b"1.00\n"),
    Shape("1 for 1.", b"1 ", b"1. "),
    Shape("1 for +1, a line each", b"1\n", b"+1\n"),
    Shape("at the edge of a tolerance", b"1.000001 ", b"1 "),
    Shape("at the edge, 40 digits", b"1.000001" + b"0" * 33 + b" ", b"1.0 "),
    Shape("large exponents", b"1e300 ", b"+1e300 "),
    Shape("17 digits", b"0.12345678901234567 ", b"0.12345678901234568 "),
    Shape("65,000 digits", b"0." + b"3" * 65_000 + b" ", b"0." + b"3" * 64_999 + b"4 "),
    Shape("65,000 zeros", b"1." + b"0" * 65_000 + b" ", b"1.0" + b" " * 64_999),
    Shape("one token of digits", b"1", b"1", b"1", b"2"),
    Shape("infinities", b"inf ", b"+inf "),
    Shape("underscores", b"1_0 ", b"10 "),
    Shape("digits of another script", "\u0663 ".encode(), b"3 "),
    Shape("digits of another script, a line each", "\u0663\n".encode(), b"3\n"),
    at_random("numbers and layout", numbers_and_layout),
    at_random("numbers, a line each", numbers_a_line),
    at_random("numbers of other scripts", numbers_of_other_scripts),
    at_random("numbers at the edge", at_the_edge),
    at_random("22 to 30 digits", long_digits),
    at_random("case and layout", case_and_layout),
    at_random("ends of lines", ends_of_lines),
)

CHECKERS: dict[str, Checker] = {
    "tokens": Tokens(),
    "case": Tokens(case_sensitive=False),
    "float": Tokens(float_absolute=1e-6, float_relative=1e-6),
    "case, float": Tokens(case_sensitive=False, float_absolute=1e-6, float_relative=1e-6),
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


def timed(call: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return Cost((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)


def memory_mib(what: str) -> float:
    """This process's memory now (VmRSS), or at its peak (VmHWM)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1024


@dataclass(frozen=True)
class Measured:
    shape: str
    cost: Cost
    extra_mib: float


def measured(shape: Shape, checker: Checker, pairs: list[tuple[memoryview, bytes]]) -> Measured:
    # The peak starts anew, see proc(5).
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_mib("VmRSS")
    costs = [timed(partial(checker.check, output, expected)) for output, expected in pairs]
    return Measured(shape.name, max(costs, key=lambda cost: cost.cpu_ms), memory_mib("VmHWM") - before)


def read(one: memoryview, other: memoryview) -> tuple[int, int]:
    return zlib.crc32(one), zlib.crc32(other)


def compare(size_bytes: int, report: Report) -> None:
    rows: list[list[Cell]] = []
    of: dict[str, list[Measured]] = {name: [] for name in CHECKERS}
    for shape in SHAPES:
        count = size_bytes // max(len(shape.output), len(shape.expected))
        one, other = shape.output * count + shape.output_end, shape.expected * count + shape.expected_end
        with mapped(one) as first, mapped(other) as second:
            reading = timed(partial(read, first, second))
            for name, checker in CHECKERS.items():
                of[name].append(measured(shape, checker, [(first, other), (second, one)]))
        rows.append([shape.name, reading.cpu_ms, *(found[-1].cost.cpu_ms for found in of.values())])
    worst = {name: max(found, key=lambda one: one.cost.cpu_ms) for name, found in of.items()}
    report.table(
        f"The worst of {len(SHAPES)} shapes of {size_bytes >> 20} MB",
        ("checker", "wall ms", "CPU ms", "memory MiB", "shape"),
        [
            [name, one.cost.wall_ms, one.cost.cpu_ms, max(found.extra_mib for found in of[name]), one.shape]
            for name, one in worst.items()
        ],
    )
    report.table("CPU ms of each; beside it, of reading both texts once (CRC-32)", ("shape", "read", *CHECKERS), rows)
    report.goal("worst of all, CPU", max(one.cost.cpu_ms for one in worst.values()), 1000.0, " ms")
    report.goal("memory beside the texts", max(one.extra_mib for found in of.values() for one in found), 4.0, " MiB")


def main() -> None:
    given = options(__doc__)
    report = Report("compare", given.quick)
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as directory:
        library = Path(directory) / "native.so"
        prebuilt.compile_library(library)
        native.load(library)
        # What is made once is no cost of a comparison.
        native.decimal_digits()
        compare((16 if given.quick else 64) * 2**20, report)
    report.emit(given.json)


if __name__ == "__main__":
    main()
