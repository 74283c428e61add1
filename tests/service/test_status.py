"""GET /status: what goes on, and the last grades without what was graded."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from service.history import MOST
from tests.conftest import Serve
from tests.serving import Server, poll

pytestmark = pytest.mark.jail

FLAGS = ("--workers", "1", "--languages", "python", "--queue-size", "3")


def status(server: Server) -> dict[str, Any]:
    report: dict[str, Any] = httpx.get(f"{server.url}/status").json()
    return report


def test_an_idle_service_says_so(serve: Serve) -> None:
    with serve(*FLAGS) as server:
        report = status(server)
        assert abs((datetime.fromisoformat(report.pop("now")) - datetime.now(UTC)).total_seconds()) < 60
        assert re.fullmatch(r"\d+\.\d+\.\d+", report.pop("version"))
        assert report == {
            "ready": True,
            "reasons": [],
            "workers": {"alive": 1, "busy": 0},
            "queue": {"length": 0, "size": 3, "age_s": 0.0},
            "verdict_cache": {"hits": 0, "misses": 0},
            # The grades that readiness rests on are its own.
            "grades": [],
        }


def test_workers_at_work_and_grades_that_wait_are_counted(serve: Serve, sleeper: dict[str, Any]) -> None:
    async def scenario(server: Server) -> None:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            tasks = [asyncio.create_task(client.post("/grade", json=sleeper)) for _ in range(3)]
            await asyncio.to_thread(poll, lambda: status(server)["queue"]["length"] == 2, 20, "two wait")
            report = status(server)
            assert report["workers"] == {"alive": 1, "busy": 1}
            await asyncio.to_thread(poll, lambda: status(server)["queue"]["age_s"] > 0.2, 20, "they have waited")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        # What was cancelled has not ended.
        poll(lambda: status(server)["workers"]["busy"] == 0, 20, "the worker is free")
        assert status(server)["grades"] == []

    with serve(*FLAGS) as server:
        asyncio.run(scenario(server))


def test_a_grade_shows_as_what_it_came_to_and_nothing_of_its_program_or_tests(
    serve: Serve, a_plus_b: dict[str, Any]
) -> None:
    secret = "secret-of-the-program-or-test"
    a_plus_b["source"] += f"\nprint('{secret}')\n"
    a_plus_b["problem"]["tests"] = [
        {"input": "1 2\n", "output": "3\n", "name": secret},
        {"input": f"1 2\n{secret}", "output": secret},
    ]
    before = datetime.now(UTC)
    with serve(*FLAGS) as server:
        result = httpx.post(f"{server.url}/grade", json=a_plus_b | {"id": "step-1", "detail": "outputs"}).json()
        batch = {
            "items": [a_plus_b | {"id": f"item-{number}", "completion": "", "source": None} for number in range(2)]
        }
        httpx.post(f"{server.url}/grade/batch", json=batch)
        httpx.post(f"{server.url}/grade", json=a_plus_b | {"language": "cobol"})
        report = status(server)
    assert secret not in json.dumps(report)
    one = report["grades"].pop()
    assert before <= datetime.fromisoformat(one.pop("at")) <= datetime.now(UTC)
    assert all(one.pop(name) >= 0 for name in ("queue_s", "compile_s", "run_s"))
    assert one == {
        "client": None,
        "id": "step-1",
        "problem_id": result["problem_id"],
        "language": "python",
        "verdict": "wrong_answer",
        "category": "correctness_failure",
        "tests": {"wrong_answer": 2},
    }
    assert sorted(grade["id"] for grade in report["grades"]) == ["item-0", "item-1"]
    assert {(grade["verdict"], grade["tests"]["skipped"]) for grade in report["grades"]} == {("format_error", 2)}


def test_the_last_are_kept_the_newest_first_and_no_more_than_a_hundred(serve: Serve, a_plus_b: dict[str, Any]) -> None:
    unrun = {"source": None, "completion": "no program"}
    with serve(*FLAGS) as server:
        items = [a_plus_b | unrun | {"id": str(number)} for number in range(MOST + 5)]
        httpx.post(f"{server.url}/grade/batch", json={"items": items}, timeout=60)
        httpx.post(f"{server.url}/grade", json=a_plus_b | unrun | {"id": "last"}, timeout=60)
        ids = [grade["id"] for grade in status(server)["grades"]]
    assert (len(ids), ids[0]) == (MOST, "last")
    assert "0" not in ids
