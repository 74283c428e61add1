"""What breaks under a running service, and how it comes back: workers that stop, data that is damaged or goes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from pydantic import ValidationError

from sandbox.config import SandboxConfig
from sandbox.host import prepare
from sandbox.judge import Judge
from service import contract
from service.engines.answers import Answer, Refused
from service.engines.base import Job
from service.engines.bench import graded
from service.engines.prepare import local_engine
from service.grading import Grading
from service.intake import Intake
from service.metrics import Metrics
from service.settings import Settings
from service.stores.loaded import LoadedProblems
from service.stores.problems import ProblemStore
from tests.serving import Server, poll, serving

pytestmark = pytest.mark.jail


def grade(server: Server, request: dict[str, Any]) -> dict[str, Any]:
    answer = httpx.post(f"{server.url}/grade", json=request, timeout=120)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def test_an_inline_problem_that_is_damaged_in_the_store_is_written_again(
    grader: Server, a_plus_b: dict[str, Any]
) -> None:
    a_plus_b["problem"]["tests"][0]["name"] = "to be damaged in place"
    identifier = contract.problem_id(contract.GradeRequest.model_validate(a_plus_b).problem)
    assert grade(grader, a_plus_b)["verdict"] == "accepted"
    path = grader.data_dir / "problems" / identifier[7:9] / f"{identifier[9:]}.json"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"1 2", b"2 2"))
    for _ in range(4):
        assert grade(grader, a_plus_b)["verdict"] == "accepted"
    assert path.read_bytes() == whole
    path.write_bytes(whole.replace(b"1 2", b"2 2"))
    assert httpx.put(f"{grader.url}/problems", json=a_plus_b["problem"]).status_code == 201
    assert path.read_bytes() == whole


@contextlib.contextmanager
def disk(image: Path, mounted_at: Path) -> Iterator[None]:
    """A disk that can be changed behind the kernel's back."""
    with image.open("wb") as file:
        file.truncate(8 * 2**20)
    mounted_at.mkdir(parents=True)
    subprocess.run(["mkfs.ext4", "-q", "-O", "^metadata_csum", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mounted_at], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", mounted_at], check=True)


def rot(image: Path, path: Path, sound: bytes, rotten: bytes) -> None:
    """Change a file as a failing disk does, which tells nobody: no time of the file's changes."""
    os.sync()
    before = path.stat()
    place = image.read_bytes().index(sound)
    with image.open("r+b") as file:
        file.seek(place)
        file.write(rotten)
        file.flush()
        os.fsync(file.fileno())
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert rotten in file.read()
    assert path.stat().st_ctime_ns == before.st_ctime_ns


def test_an_inline_problem_whose_file_rots_unnoticed_costs_one_grade(
    grader_data_dir: Path, tmp_path: Path, a_plus_b: dict[str, Any]
) -> None:
    data_dir, image = grader_data_dir / "rotting", tmp_path / "disk"
    flags = ("--workers", "1", "--languages", "python")
    a_plus_b["problem"]["tests"][0]["name"] = "as it was sent"
    identifier = contract.problem_id(contract.GradeRequest.model_validate(a_plus_b).problem)
    path = data_dir / "problems" / identifier[7:9] / f"{identifier[9:]}.json"
    with disk(image, data_dir / "problems"):
        with serving(data_dir, tmp_path / "log", *flags) as server:
            assert httpx.put(f"{server.url}/problems", json=a_plus_b["problem"]).status_code == 201
            whole = path.read_bytes()
            rot(image, path, b"as it was sent", b"as it rotted..")
            result = grade(server, a_plus_b)
            assert (result["verdict"], result["category"], result["rewards"]["R_inf"]) == ("internal_error", None, None)
            assert grade(server, a_plus_b)["verdict"] == "accepted"
            assert path.read_bytes() == whole
            # Whoever sends the id alone has to send the problem again, and is told so.
            rot(image, path, b"as it was sent", b"as it rotted..")
        with serving(data_dir, tmp_path / "log", *flags) as server:
            refused = httpx.post(f"{server.url}/grade", json=a_plus_b | {"problem": identifier}, timeout=60)
            assert (refused.status_code, refused.json()["type"]) == (500, "urn:rkgrade:error:stored-problem-corrupt")
            assert "send the problem again" in refused.json()["detail"]


def test_a_data_directory_that_goes_is_made_again(
    grader_data_dir: Path, tmp_path: Path, a_plus_b: dict[str, Any]
) -> None:
    data_dir = grader_data_dir / "to be removed"
    with serving(data_dir, tmp_path / "log", "--workers", "2", "--languages", "python,c") as server:
        shutil.rmtree(data_dir)
        c = a_plus_b | {"language": "c", "source": '#include <stdio.h>\nint main() { puts("3"); }'}
        for request in (a_plus_b, c, a_plus_b, c):
            assert grade(server, request)["verdict"] == "accepted"
        assert httpx.get(f"{server.url}/health/ready").status_code == 200


def test_internal_errors_in_a_row_cost_readiness_until_a_grade_goes_well(
    grader_data_dir: Path, tmp_path: Path, a_plus_b: dict[str, Any]
) -> None:
    data_dir = grader_data_dir / "to be blocked"
    with serving(data_dir, tmp_path / "log", "--workers", "1", "--languages", "c") as server:
        # Nothing can be made again while a file is in the way.
        shutil.move(data_dir / "locks", data_dir / "away")
        (data_dir / "locks").write_text("")
        for number in range(5):
            assert httpx.get(f"{server.url}/health/ready").status_code == 200
            request = a_plus_b | {"language": "c", "source": f"int main() {{ return {number}; }}"}
            assert grade(server, request)["verdict"] == "internal_error"
        refused = httpx.get(f"{server.url}/health/ready")
        assert refused.status_code == 503
        assert "were internal errors" in str(refused.json()["reasons"])
        (data_dir / "locks").unlink()
        poll(lambda: httpx.get(f"{server.url}/health/ready").status_code == 200, 60, "ready again")


def test_a_worker_that_is_stopped_is_replaced_and_its_grade_repeated(
    grader_data_dir: Path, sleeper: dict[str, Any]
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 3.0
    settings = Settings(data_dir=grader_data_dir, workers=1, languages="python")

    async def run() -> tuple[str, float]:
        engine = local_engine(settings, Metrics(), silence_s=4.0)
        before = set(psutil.Process().children())
        await engine.start()
        try:
            job = await Intake(ProblemStore(settings.problems_dir), lambda: engine.languages).job(
                contract.GradeRequest.model_validate_json(json.dumps(sleeper)), arrived_s=time.monotonic()
            )
            grading = asyncio.create_task(engine.grade(job))
            while engine.status().workers_alive == 0:
                await asyncio.sleep(0.02)
            # Later than at once: it has the job, which takes 3 s.
            await asyncio.sleep(1.0)
            [worker] = set(psutil.Process().children()) - before
            worker.send_signal(signal.SIGSTOP)
            stopped_s = time.monotonic()
            graded = await asyncio.wait_for(grading, 60)
            return json.loads(graded.result)["verdict"], time.monotonic() - stopped_s
        finally:
            await engine.close()

    verdict, took_s = asyncio.run(run())
    assert verdict == "idle"
    assert took_s > 4.0


def test_a_worker_at_work_for_longer_than_it_may_be_silent_is_let_alone(
    grader_data_dir: Path, sleeper: dict[str, Any]
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 8.0
    settings = Settings(data_dir=grader_data_dir, workers=1, languages="python")

    async def run() -> tuple[str, bytes]:
        metrics = Metrics()
        engine = local_engine(settings, metrics, silence_s=4.0)
        await engine.start()
        try:
            job = await Intake(ProblemStore(settings.problems_dir), lambda: engine.languages).job(
                contract.GradeRequest.model_validate_json(json.dumps(sleeper)), arrived_s=time.monotonic()
            )
            graded = await asyncio.wait_for(engine.grade(job), 60)
            return json.loads(graded.result)["verdict"], metrics.exposition()
        finally:
            await engine.close()

    verdict, exposition = asyncio.run(run())
    assert verdict == "idle"
    assert b'cause="worker_died"} 0.0' in exposition


def test_only_limits_are_refused_as_limits(grader_data_dir: Path, tmp_path: Path, a_plus_b: dict[str, Any]) -> None:
    """What is stored and whole, but outside the contract, is a fault of ours."""
    config = SandboxConfig(data_dir=grader_data_dir, languages=frozenset({"python"}))
    prepare(config)
    store = ProblemStore(tmp_path)
    stranger, _ = store.put([b'{"kind":"of another version"}'])
    known, _ = store.put(contract.canonical_chunks(contract.parse_problem(json.dumps(a_plus_b["problem"]))))
    judge = Judge(config, 200, None)
    ours, theirs = socket.socketpair()
    with ours, theirs, contextlib.closing(judge):
        grading = Grading(judge, LoadedProblems(store, limit_bytes=2**20, limit_tests=10), graders={})

        def answer(identifier: str) -> Answer:
            request = contract.GradeRequest.model_validate(a_plus_b | {"problem": identifier, "time_factor": 100.0})
            # Past what intake lets through: limits that come to too much.
            request = request.model_copy(update={"limits": contract.LimitOverrides(cpu_s=300.0)})
            return graded(grading, Job(request, time.monotonic()), queue_s=0.0, cancel_fd=theirs.fileno())

        refused = answer(known)
        assert isinstance(refused, Refused)
        assert refused.reason == "time_factor"
        with pytest.raises(ValidationError):
            answer(stranger)
