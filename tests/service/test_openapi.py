"""The service against its own OpenAPI document: schemathesis makes up requests, good and bad, and checks answers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.conftest import Serve
from tests.serving import Server

pytestmark = pytest.mark.jail

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
TOKEN = "fuzzer-0123456789abcdef"

#: For each operation and each way to make requests up; how long all of it may take.
EXAMPLES = 25
WITHIN_S = 280


def examined(server: Server, folder: Path, *options: str) -> str:
    """What schemathesis says of a service that it finds nothing wrong with. Its seed is fixed: what passed once does
    not fail another day by chance.
    """
    done = subprocess.run(
        [str(SCHEMATHESIS), "--config-file", str(Path(__file__).with_name("schemathesis.toml")),
         "run", f"{server.url}/openapi.json", "--checks", "all", "--max-examples", str(EXAMPLES), "--seed", "1",
         "--no-shrink", "--continue-on-failure", "--request-timeout", "60", *options],
        cwd=folder, capture_output=True, text=True, timeout=WITHIN_S, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert server.process.poll() is None
    return said


def counted(metrics: str, series: str) -> float:
    (line,) = [line for line in metrics.splitlines() if line.startswith(f"{series} ")]
    return float(line.rpartition(" ")[2])


def test_answers_are_as_the_document_says(serve: Serve, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"fuzzer {TOKEN}\n")
    with serve("--workers", "1", "--languages", "python", "--tokens-file", str(tokens)) as server:
        with_token = examined(server, tmp_path, "--header", f"Authorization: Bearer {TOKEN}")
        without = examined(server, tmp_path, "--phases", "examples,coverage")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        metrics = httpx.get(f"{server.url}/metrics", headers=headers).text
        document = httpx.get(f"{server.url}/openapi.json").json()
        log = server.log.read_text()
    for said in (with_token, without):
        (cases,) = re.findall(r"(\d+) generated, \1 passed", said)
        assert int(cases) > 1000
    # It got as far as grading, and without the token no further than the door.
    assert counted(metrics, 'rkgrade_requests_total{client="fuzzer"}') > 1000
    # The first is readiness' own.
    assert counted(metrics, 'rkgrade_grades_total{category="correct",language="python",verdict="accepted"}') > 1
    closed = [one for methods in document["paths"].values() for one in methods.values() if one["security"]]
    assert f"Authentication failed: {len(closed)} operations returned only 401/403" in without
    assert "Traceback" not in log
    assert TOKEN not in log
