"""Bodies that cost more than they weigh: the bounds on structure, and what the API's memory comes to."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import httpx
import pytest

from service.errors import InvalidRequest
from service.structure import MAX_KEYS, MAX_VALUES, weigh
from tests.conftest import Serve
from tests.serving import Server

MIB = 2**20


@pytest.mark.parametrize(
    ("unit", "most"),
    [
        (b'{"":1}', MAX_KEYS),
        (b'{"" \n: 1}', MAX_KEYS),
        (rb'{"\\":"\\"}', MAX_KEYS),
        (rb'{"\"":":"}', MAX_KEYS),
        (b"1", MAX_VALUES),
        (b'"\\\\"', MAX_VALUES),
        (b"[[]]", MAX_VALUES // 3),
    ],
)
def test_structure_is_bounded_to_the_last_value(unit: bytes, most: int) -> None:
    weigh(b"[" + (unit + b",") * (most - 1) + unit + b"]")
    with pytest.raises(InvalidRequest):
        weigh(b"[" + (unit + b",") * most + unit + b"]")


@pytest.mark.parametrize("escape", [b"", b"\\", b"\\\\\\"])
def test_strings_hold_what_they_like(escape: bytes) -> None:
    text = (escape + b'":,[{' if escape else b":,[{") * (MAX_VALUES // 3 + 1)
    weigh(b'["' + text + b'"]')
    # One that never ends is for the parser to refuse, and takes no longer.
    weigh(b'["' + text)


def peak_bytes(server: Server) -> int:
    """The most memory that the API has held."""
    [kib] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    return int(kib) * 1024


def bad_tests(count: int) -> str:
    return '{"problem":{"kind":"stdio","tests":[' + ",".join(["1"] * count) + "]}}"


def bad_groups(count: int) -> str:
    groups = ",".join(f'"k{number}":1' for number in range(count))
    return f'{{"problem":{{"kind":"stdio","tests":[{{"input":"","output":""}}],"groups":{{{groups}}}}}}}'


@pytest.mark.jail
@pytest.mark.parametrize(
    ("path", "body", "most_bytes", "expected"),
    [
        (
            "grade/batch",
            '{"items":[' + ",".join([bad_tests(10_000)] * 330) + "]}",
            300 * MIB,
            "items[0].problem.tests[0]",
        ),
        ("grade", "{" + ",".join(f'"k{number}":1' for number in range(400_000)) + "}", 300 * MIB, "mistakes"),
        ("grade", bad_tests(60_000_000), 500 * MIB, "values"),
        ("grade", '{"problem":' + ",".join('{"a":1}' for _ in range(1_100_000)), 300 * MIB, "names of fields"),
        ("grade", bad_groups(400_000), 300 * MIB, "problem.groups.k0"),
    ],
    ids=["mistakes in tests", "unknown fields", "values", "objects", "groups"],
)
def test_no_body_costs_much_more_than_its_size(
    serve: Serve, path: str, body: str, most_bytes: int, expected: str
) -> None:
    with serve("--workers", "1", "--languages", "python") as server:
        before = peak_bytes(server)
        refused = httpx.post(
            f"{server.url}/{path}",
            content=gzip.compress(body.encode()),
            headers={"Content-Encoding": "gzip"},
            timeout=60,
        )
        assert refused.status_code == 422
        assert expected in refused.text
        assert peak_bytes(server) - before < most_bytes
