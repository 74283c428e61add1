"""What a trace in the log tells, and what it must not."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from fastapi import FastAPI

from service.cli import DrainingServer
from service.settings import Settings
from tests.service.test_local import idle_engine

FAILING = """
import logging, sys
from service.logs import configure
from service.settings import Settings
configure(Settings(log_format=sys.argv[1]))
def grade():
    program = "secret-of-the-" + "program"
    raise RuntimeError(f"a fault of {len(program)} letters")
try:
    grade()
except RuntimeError:
    logging.getLogger("uvicorn.error").exception("failed")
"""


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_traces_hold_no_values_of_variables(log_format: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING, log_format], capture_output=True, text=True, timeout=60, check=True
    )
    assert "a fault of 21 letters" in done.stderr
    assert "in grade" in done.stderr or '"grade"' in done.stderr
    assert "secret-of-the-program" not in done.stderr


def test_that_it_drains_is_told_in_nobodys_name_whatever_the_signal_came_into(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = DrainingServer(FastAPI(), idle_engine(tmp_path), Settings(data_dir=tmp_path), 1024)
        serving = asyncio.create_task(server.serve())
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
            structlog.contextvars.bind_contextvars(request_id="somebodys", client="somebody")
            server.handle_exit(signal.SIGTERM, None)
            await serving

    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        asyncio.run(scenario())
    [draining] = [line for line in lines if line["event"] == "draining"]
    assert draining.keys() == {"event", "log_level", "timeout_s"}
