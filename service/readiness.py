"""Whether the service can do what it is for: in each language a real A+B has been graded, through the queue
and in a cell.

A toolchain that is present but broken, a host that refuses cells, a full disk: all show here, before a
trainer sends its first rollout.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence

import structlog

from service import contract
from service.engines.base import Engine
from service.errors import ServiceError
from service.intake import Intake

_AGAIN_S = 5.0

#: How often it is looked for a first language, where workers are elsewhere.
_FIRST_S = 0.5

#: Internal errors in a row from which no more grades should be sent here until one goes well.
_MOST_FAULTS = 5

_A_PLUS_B = contract.PROBLEMS.validate_python(
    {
        "kind": "stdio",
        "tests": [{"input": "1 2\n", "output": "3\n"}],
        "checker": {"type": "tokens"},
        # Generous: a slow start of this host is no reason to send nothing here.
        "limits": {"cpu_s": 10.0, "memory_mb": 1024},
    }
)

_log = structlog.get_logger()


class Readiness:
    def __init__(self, engine: Engine, intake: Intake) -> None:
        self._engine = engine
        self._intake = intake
        self._programs: dict[str, str] = {}
        self._open: dict[str, str] = {}
        self._meet()

    def _meet(self) -> None:
        """Languages come with the hosts that offer them."""
        for language in self._engine.languages:
            if language.id not in self._programs:
                self._programs[language.id] = language.self_test
                self._open[language.id] = f"{language.id}: A+B has not been graded yet"

    def reasons(self) -> list[str]:
        """Why grades should not be sent here now; empty where they may."""
        # What is offered by now counts: a host may have come since somebody looked.
        self._meet()
        status = self._engine.status()
        reasons = list(self._open.values())
        if status.draining:
            reasons.insert(0, "the service is shutting down")
        elif not status.queue_reached:
            reasons.insert(0, "the queue cannot be reached")
        elif status.workers_alive == 0:
            reasons.insert(0, "no worker is alive")
        if self._faulty():
            reasons.append(f"the last {status.faults_in_a_row} grades were internal errors")
        if not reasons and not self._engine.languages:
            reasons.append("no language is installed")
        return reasons

    async def establish(self) -> None:
        """Grade A+B in every language, again and again where it fails; later in one, where nothing else goes well.

        Does not return.
        """
        while True:
            if self._open:
                await self._grade(list(self._open))
            while not self._faulty() and not self._open:
                await asyncio.sleep(_AGAIN_S if self._programs else _FIRST_S)
                self._meet()
            if not self._open:
                await self._grade(list(self._programs)[:1])

    async def _grade(self, languages: Sequence[str]) -> None:
        while True:
            await asyncio.gather(*(self._try(language) for language in languages))
            if not self._open and not self._faulty():
                _log.info("ready")
                return
            _log.warning("not ready", reasons=self.reasons())
            await asyncio.sleep(_AGAIN_S)
            languages = list(self._open) or languages

    def _faulty(self) -> bool:
        return self._engine.status().faults_in_a_row >= _MOST_FAULTS

    async def _try(self, language: str) -> None:
        request = contract.GradeRequest(
            problem=_A_PLUS_B, language=language, source=self._programs[language], detail="outputs", fresh=True
        )
        try:
            job = await self._intake.job(request, arrived_s=time.monotonic())
            result = json.loads((await self._engine.grade(job, admitted=True)).result)
        except (ServiceError, OSError) as error:
            self._open[language] = f"{language}: {error}"
            return
        if result["verdict"] == "accepted":
            self._open.pop(language, None)
        else:
            said = (result["compile"] or {}).get("message") or result["tests"][0]["message"]
            self._open[language] = f"{language}: A+B came to {result['verdict']} {said}".rstrip()
