"""`rkgrade frontier SET`: checkpoints served by a command one by one, evaluated by a real grader, and drawn."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rl_client.evaluate.errors import BadOption
from rl_client.frontier import serving
from rl_client.frontier.serving import ServerDied, argv_of
from tests.rl_client.answering import answering
from tests.rl_client.evaluate.models import NONE, RIGHT, SLOW, WRONG, Model, lines, report, row, write
from tests.rl_client.frontier.test_drawing import rkgrade
from tests.serving import RKGRADE, Server

pytestmark = pytest.mark.usefixtures("key")

ROWS = [row(key, "easy") for key in ("twice", "double", "both", "again")]
SERVE = f"{sys.executable} -m tests.rl_client.frontier.model_server {{checkpoint}} {{port}}"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server asks for, and the command has."""
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")


def checkpoint(folder: Path, *answers: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "answers.json").write_text(json.dumps({one["key"]: answers for one in ROWS}))
    return folder


def served(folder: Path) -> list[list[int]]:
    """The processes of each time that it was served."""
    path = folder / "pids"
    return [[int(pid) for pid in line.split()] for line in path.read_text().splitlines()] if path.exists() else []


def running(folder: Path) -> list[int]:
    return [pid for pids in served(folder) for pid in pids if _is_running(pid)]


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.jail
def test_a_server_that_dies_is_told_of_and_a_rerun_goes_on_from_there(tmp_path: Path, grader: Server) -> None:
    low = checkpoint(tmp_path / "alpha=0", RIGHT, SLOW)
    between = checkpoint(tmp_path / "alpha=0.5", RIGHT, RIGHT)
    high = checkpoint(tmp_path / "high", RIGHT, WRONG)
    (between / "dies").touch()
    out, file = tmp_path / "out", write(tmp_path / "rows.jsonl", ROWS)
    with answering(Model({one["key"]: [NONE, RIGHT] for one in ROWS})) as url:
        command: list[Any] = ["problems", file, "--out", out, "--url", grader.url, "--samples", 2, "--concurrency", 1]
        command += ["--serve", SERVE, "--at", f"other={url}/v1"]
        command += ["--checkpoint", low, "--checkpoint", between, "--checkpoint", f"{high}@1"]
        died = rkgrade(*command)
        assert died.exit_code == 3
        assert "rkgrade: alpha=0.5: the server has ended with status 7; the end of " in died.stderr
        assert died.stderr.rstrip().endswith(
            f": out of memory; what was done is kept in {out}, and the same command goes on"
        )
        assert [len(served(one)) for one in (low, between, high)] == [1, 1, 0]
        assert running(low) + running(between) == []

        (between / "dies").unlink()
        done = rkgrade(*command)
    assert done.exit_code == 0, done.stderr
    # Nothing is sampled twice, and no server is started for what is sampled.
    assert [len(served(one)) for one in (low, between, high)] == [1, 2, 1]
    assert [len((one / "asked").read_text().split()) for one in (low, between, high)] == [4, 4, 4]
    assert running(between) + running(high) == []
    # Each has seeds of its own, though their servers all call the model the same.
    seeds = [[one["seed"] for one in lines(out / name / "generations.jsonl")] for name in ("alpha=0", "high", "other")]
    assert len(set().union(*seeds)) == sum(len(set(one)) for one in seeds)
    rates = [report(out / name).strata[0].categories for name in ("alpha=0", "alpha=0.5", "high", "other")]
    assert [{name: rate.mean for name, rate in one.items() if rate.mean} for one in rates] == [
        {"correct": 0.5, "optimization_failure": 0.5},
        {"correct": 1},
        {"correct": 0.5, "correctness_failure": 0.5},
        {"correct": 0.5, "format_error": 0.5},
    ]
    assert done.stdout.startswith("Interpolation: ")
    assert "high (trained)" in (out / "frontier.html").read_text()


def test_what_servers_before_have_written_is_not_told_of_this_one(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("out of memory\n")
    for command, words in (
        ("exit 3", "has ended with status 3; it has written nothing to "),
        ("echo no model", r"the end of .*server\.log: no model$"),
    ):
        with (
            serving.served(f"sh -c '{command}' {{checkpoint}} {{port}}", tmp_path, log) as server,
            pytest.raises(ServerDied, match=words),
        ):
            asyncio.run(server.healthy(20, None))
    assert log.read_text() == "out of memory\nno model\n"


@pytest.mark.jail
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_server_behind(tmp_path: Path, grader: Server, number: int, status: int) -> None:
    low = checkpoint(tmp_path / "alpha=0", RIGHT)
    (low / "hangs").touch()
    file = write(tmp_path / "rows.jsonl", ROWS)
    command: list[Any] = ["problems", file, "--out", tmp_path / "out", "--url", grader.url, "--samples", 1]
    command += ["--concurrency", 1, "--serve", SERVE, "--checkpoint", low, "--checkpoint", f"{low}x@1"]
    checkpoint(tmp_path / "alpha=0x", RIGHT)
    with subprocess.Popen([RKGRADE, "frontier", *map(str, command)], stderr=subprocess.PIPE, text=True) as process:
        try:
            _until((low / "asked").exists)
            assert len(running(low)) == 2
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, running(low)) == (status, [])
    assert "Traceback" not in said


def test_something_else_where_a_folder_is_to_be_is_named(tmp_path: Path) -> None:
    out, file = tmp_path / "out", write(tmp_path / "rows.jsonl", ROWS)
    out.mkdir()
    (out / "low").touch()
    done = rkgrade(
        *("problems", file, "--out", out, "--serve", "true {checkpoint} {port}"),
        *("--checkpoint", f"low={tmp_path}@0", "--checkpoint", f"high={tmp_path}@1"),
    )
    assert (done.exit_code, done.stderr) == (2, f"rkgrade: low: {out / 'low'}: File exists\n")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--at", "0=http://127.0.0.1:9"], "two checkpoints at least"),
        (["--at", "nan=http://127.0.0.1:9"], "--at: alpha must be a finite number, not 'nan'"),
        (["--at", "http://127.0.0.1:9"], "--at: needs ALPHA=URL or NAME=URL"),
        (["--at", "0=http://127.0.0.1:9", "--at", "0.0=http://127.0.0.1:9"], "alpha=0 is given twice"),
        (["--at", "a/b=http://127.0.0.1:9", "--at", "1=http://127.0.0.1:9"], "'a/b' is a folder's name"),
        (["--serve", "x {checkpoint} {port}"], "--checkpoint and --serve go together"),
        (["--serve", "x {checkpoint}", "--checkpoint", "/tmp", "--at", "0=http://127.0.0.1:9"], "has no {port}"),
        (["--serve", "x {checkpoint} {port}", "--checkpoint", "/nowhere@1"], "--checkpoint: /nowhere"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_anything_is_done(
    tmp_path: Path, options: list[str], reason: str
) -> None:
    done = rkgrade("problems", write(tmp_path / "rows.jsonl", ROWS), "--out", tmp_path / "out", *options)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("vllm serve {checkpoint}", "has no {port}"),
        ("vllm serve --port {port}", "has no {checkpoint}"),
        ("vllm serve {checkpoint} --port {port} {other}", "cannot be filled with {checkpoint} and {port}: 'other'"),
        ("vllm serve {checkpoint} --port {port} '", "No closing quotation"),
        ("vllm serve {checkpoint.x} {checkpoint} {port}", "has no attribute 'x'"),
    ],
)
def test_a_template_says_where_the_checkpoint_and_the_port_go(template: str, reason: str) -> None:
    with pytest.raises(BadOption) as raised:
        argv_of(template, Path("a b"), 1234)
    assert str(raised.value).startswith(f"--serve: {template!r} ") and reason in str(raised.value)


def test_a_checkpoint_is_one_argument_whatever_its_name(tmp_path: Path) -> None:
    assert argv_of("serve '{checkpoint}/x' --port={port}", Path("a b"), 1) == ["serve", "a b/x", "--port=1"]


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
