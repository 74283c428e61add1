"""From a request to a job: what the way there must not hold up."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from pathlib import Path

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from service.contract import GradeRequest, parse_problem
from service.engines.base import LanguageInfo
from service.intake import Intake
from service.stores.shared import SharedProblems

PROBLEM = parse_problem(json.dumps({"kind": "stdio", "tests": [{"input": "", "output": ""}]}))


class Watched(MemoryFileSystem):
    """A store of fsspec's that notes who waits for it."""

    protocol = "watched"
    asked_by: list[threading.Thread]

    def info(self, path: str, **kwargs: object) -> dict[str, object]:
        Watched.asked_by.append(threading.current_thread())
        found: dict[str, object] = super().info(path, **kwargs)
        return found


fsspec.register_implementation("watched", Watched, clobber=True)


def test_the_event_loop_does_not_wait_for_a_store_that_is_elsewhere(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = SharedProblems(tmp_path, f"watched://{uuid.uuid4().hex}/problems")
        intake = Intake(store, lambda: (LanguageInfo("python", "Python", "3", (), ".py", ""),))
        identifier, _ = await intake.store(PROBLEM)
        request = GradeRequest(problem=identifier, language="python", source="")
        store.doubt(identifier)
        Watched.asked_by.clear()
        job = await intake.job(request, arrived_s=0.0)
        assert job.problem_id == identifier
        assert Watched.asked_by
        assert threading.main_thread() not in Watched.asked_by

    Watched.asked_by = []
    asyncio.run(scenario())
