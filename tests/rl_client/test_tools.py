"""Tools for models, by a grader that runs: what they do, what is told of it, and what becomes of what goes wrong."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from rl_client.async_client import AsyncGrader
from rl_client.client import Grader
from rl_client.errors import GraderUnfit, GraderUnreachable, SessionLost
from rl_client.tools import BASH, NO_CALLS_LEFT, PYTHON, SUBMIT, PythonTool, Terminal, ToolLimits, clipped
from service.contract import SessionLimits, SessionRequest
from tests.rl_client.answering import Asked, answering
from tests.serving import Server, metric, poll

T = TypeVar("T")

SMALL = ToolLimits(memory_mb=256, disk_mb=16, timeout_s=2.0)


def with_grader(url: str, do: Callable[[AsyncGrader], Awaitable[T]], patience_s: float = 300.0) -> T:
    async def main() -> T:
        async with AsyncGrader(url, patience_s=patience_s) as grader:
            return await do(grader)

    return asyncio.run(main())


def python(url: str, *programs: str, limits: ToolLimits = SMALL) -> list[str]:
    async def do(grader: AsyncGrader) -> list[str]:
        tool = PythonTool(grader, limits)
        return [await tool(program) for program in programs]

    return with_grader(url, do)


def terminal(url: str, *commands: str, limits: ToolLimits = SMALL) -> list[str]:
    async def do(grader: AsyncGrader) -> list[str]:
        one = Terminal(grader, limits, files={"given": "7\n"})
        try:
            return [await one.bash(command) for command in commands]
        finally:
            await one.close()

    return with_grader(url, do)


@pytest.mark.jail
def test_python_says_what_it_printed(grader: Server) -> None:
    assert python(grader.url, "print(6 * 7)", "import sys; sys.stderr.write('b'); print('a')", "pass") == [
        "completed. [stdout]\n42\n[/stdout]",
        "completed. [stdout]\na\n[/stdout] [stderr]\nb[/stderr]",
        "completed.",
    ]


@pytest.mark.jail
def test_python_says_how_it_failed(grader: Server) -> None:
    raised, slow, large, stdin, surrogate, torn = python(
        grader.url,
        "print(1)\nraise ValueError('no')",
        "while True: pass",
        "a = bytearray(10**9)\nprint(len(a))",
        "print(repr(input()))",
        "print('\ud800')",
        "print(",
    )
    assert torn.startswith("error: It does not compile [stderr]\n") and "SyntaxError" in torn
    assert raised.startswith("error: Exit status 1 [stdout]\n1\n[/stdout] [stderr]\nTraceback")
    assert "ValueError: no" in raised
    assert slow == "error: Timeout (2 s)"
    assert large.startswith("error: Out of memory (256 MiB)")
    assert "EOFError" in stdin
    assert surrogate == "completed. [stdout]\n?\n[/stdout]"


@pytest.mark.jail
def test_nothing_stays_from_call_to_call_of_python(grader: Server) -> None:
    assert python(grader.url, "open('a', 'w').write('b')", "import os; print(os.path.exists('a'))")[1] == (
        "completed. [stdout]\nFalse\n[/stdout]"
    )


@pytest.mark.jail
def test_calls_are_counted(grader: Server) -> None:
    limits = ToolLimits(calls=1)
    assert python(grader.url, "print(1)", "print(2)", limits=limits)[1] == NO_CALLS_LEFT
    assert terminal(grader.url, "echo 1", "echo 2", limits=ToolLimits(calls=1, disk_mb=16, memory_mb=256)) == [
        "completed. [stdout]\n1\n[/stdout]",
        NO_CALLS_LEFT,
    ]


@pytest.mark.jail
def test_a_terminals_files_stay(grader: Server) -> None:
    hungry = "python3 -c 'x = [b\"x\" * 10**6 for _ in range(10**4)]'"
    assert terminal(grader.url, "cat given; echo 8 > made; exit 3", "cat made", "sleep 60", hungry) == [
        "error: Exit status 3 [stdout]\n7\n[/stdout]",
        "completed. [stdout]\n8\n[/stdout]",
        "error: Timeout (2 s)",
        "error: Exit status 137 (out of memory) [stderr]\nKilled\n[/stderr]",
    ]


@pytest.mark.jail
def test_commands_that_cannot_be_are_told_of(grader: Server) -> None:
    empty, nul, long, lives = terminal(grader.url, "", "a\0b", "x" * 100_000, "echo 1")
    assert empty.startswith("error: command: ")
    assert nul.startswith("error: command: ")
    assert long.startswith("error: command: ")
    assert lives == "completed. [stdout]\n1\n[/stdout]"


@pytest.mark.jail
def test_files_of_a_workspace(grader: Server) -> None:
    async def do(grader: AsyncGrader) -> list[str]:
        one = Terminal(grader, SMALL)
        try:
            return [
                await one.write("src/a.py", "print(1)\n"),
                await one.read("src/a.py"),
                await one.read(),
                await one.read("none"),
                await one.write("../a", ""),
            ]
        finally:
            await one.close()

    written, text, folder, none, outside = with_grader(grader.url, do)
    assert (written, text, folder) == ("completed.", "print(1)\n", "src/")
    assert none == "error: there is no 'none' in this session"
    assert outside.startswith("error: ")


@pytest.mark.jail
def test_calls_of_one_turn_are_done_in_order_and_in_one_session(grader: Server) -> None:
    async def do(grader: AsyncGrader) -> list[str]:
        one = Terminal(grader, SMALL)
        try:
            return await asyncio.gather(*(one.bash(f"echo {number} >> a; cat a") for number in range(3)))
        finally:
            await one.close()

    before = metric(grader.url, "rkgrade_sessions_open")
    assert with_grader(grader.url, do) == [
        "completed. [stdout]\n0\n[/stdout]",
        "completed. [stdout]\n0\n1\n[/stdout]",
        "completed. [stdout]\n0\n1\n2\n[/stdout]",
    ]
    assert metric(grader.url, "rkgrade_sessions_open") == before


@pytest.mark.jail
def test_a_session_that_used_up_its_time_is_the_models_own_doing(grader: Server) -> None:
    limits = ToolLimits(memory_mb=256, disk_mb=16, timeout_s=20.0, session_cpu_s=0.5)
    before = metric(grader.url, "rkgrade_sessions_open")
    spun, after = terminal(grader.url, "while :; do :; done", "echo 1", limits=limits)
    assert spun == after == "error: The workspace has used up its CPU time, and is gone"
    # A little later it is not counted any more.
    poll(lambda: metric(grader.url, "rkgrade_sessions_open") == before, 20, "it has ended")


BRIEF = ToolLimits(memory_mb=256, disk_mb=16, session_ttl_s=1.0)


@pytest.mark.jail
def test_what_is_no_path_is_told_to_the_model(grader: Server) -> None:
    paths = ["a\ud800", "a" * 100_000, "../a", "a\0"]

    async def do(grader: AsyncGrader) -> list[str]:
        one = Terminal(grader, SMALL)
        try:
            return [told for path in paths for told in (await one.read(path), await one.write(path, ""))]
        finally:
            await one.close()

    told = with_grader(grader.url, do)
    assert [one[:7] for one in told] == ["error: "] * 2 * len(paths)
    assert "half of a surrogate pair" in told[0]


@pytest.mark.jail
def test_a_model_may_think_for_longer_than_a_session_may_be_idle(grader: Server) -> None:
    """Also while all connections wait for something else."""
    before = metric(grader.url, "rkgrade_sessions_open")

    async def main() -> str:
        async with AsyncGrader(grader.url, connections=1) as client:
            one = Terminal(client, BRIEF)
            await one.bash("echo 1 > a")
            sleeper = Terminal(client, BRIEF)
            await sleeper.bash("sleep 3")
            told = await one.bash("cat a")
            await one.close()
            await sleeper.close()
            return told

    assert asyncio.run(main()) == "completed. [stdout]\n1\n[/stdout]"
    assert metric(grader.url, "rkgrade_sessions_open") == before


@pytest.mark.jail
def test_a_thread_keeps_a_session_by_its_id(grader: Server) -> None:
    with Grader(grader.url) as client:
        request = SessionRequest(ttl_s=1.0, limits=SessionLimits(memory_mb=256, disk_mb=16))
        with client.open_session(request) as session:
            until = time.monotonic() + 2
            while time.monotonic() < until:
                client.keep_session(session.id)
            assert session.run("true").exit_code == 0
        with pytest.raises(SessionLost):
            client.keep_session(session.id)


@pytest.mark.jail
def test_a_session_that_nobody_works_in_any_more_ends(grader: Server) -> None:
    before = metric(grader.url, "rkgrade_sessions_open")

    async def main() -> None:
        async with AsyncGrader(grader.url) as client:
            await Terminal(client, BRIEF).bash("true")
            gc.collect()
            until = time.monotonic() + 20
            while metric(grader.url, "rkgrade_sessions_open") != before:
                assert time.monotonic() < until, "it is kept"
                await asyncio.sleep(0.1)

    asyncio.run(main())


@pytest.mark.jail
def test_sessions_of_a_process_that_was_killed_end_soon(grader: Server) -> None:
    before = metric(grader.url, "rkgrade_sessions_open")
    program = f"""
import asyncio
from rl_client.async_client import AsyncGrader
from rl_client.tools import Terminal, ToolLimits

async def main():
    one = Terminal(AsyncGrader("{grader.url}"), ToolLimits(memory_mb=256, disk_mb=16, session_ttl_s=1.0))
    print(await one.bash("true"), flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "completed.\n"
            assert metric(grader.url, "rkgrade_sessions_open") == before + 1
        finally:
            process.kill()
    poll(lambda: metric(grader.url, "rkgrade_sessions_open") == before, 20, "the session has ended")


@pytest.mark.jail
def test_a_session_that_somebody_closed_is_lost(grader: Server) -> None:
    async def do(grader: AsyncGrader) -> None:
        one = Terminal(grader, SMALL)
        await one.bash("true")
        assert one.session is not None
        await one.session.close()
        with pytest.raises(SessionLost) as lost:
            await one.bash("true")
        assert (lost.value.ended, lost.value.is_own) == ("closed", False)

    with_grader(grader.url, do)


def test_a_fault_of_the_graders_costs_no_call() -> None:
    result = {
        "status": "internal_error", "message": "", "stdout": "", "stderr": "", "truncated": False, "exit_code": None,
        "signal": None, "cpu_s": None, "wall_s": None, "memory_bytes": None, "files": {}, "files_left_out": 0,
        "compile": None, "language": "python",
        "timing": {"queue_s": 0, "compile_s": 0, "run_s": 0, "total_s": 0},
        "grader": {"version": "1", "sandbox": "x", "language_version": "y", "secure": True},
    }  # fmt: skip
    asked: list[str] = []

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        asked.append(one.path)
        return 200, {}, result

    async def do(grader: AsyncGrader) -> tuple[str, int, int]:
        tool = PythonTool(grader)
        return await tool("print(1)"), tool.calls, tool.faults

    with answering(reply) as url:
        told = with_grader(url, do)
    assert told == ("error: the tool failed, not the program; this call does not count", 0, 1)
    assert asked == ["/run"] * 3


def test_a_command_is_not_run_twice() -> None:
    asked: list[str] = []

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        asked.append(one.path)
        if one.path == "/sessions":
            until = "2026-01-01T00:00:00Z"
            return 201, {}, {"id": "a", "expires_at": until, "closes_at": until, "cpu_s": 0}
        return (503, {"Retry-After": "0"}, {}) if len(asked) == 2 else (502, {}, {})

    async def do(grader: AsyncGrader) -> None:
        with pytest.raises(SessionLost):
            await Terminal(grader).bash("rm -r /")

    with answering(reply) as url:
        with_grader(url, do)
    assert asked[:3] == ["/sessions", "/sessions/a/exec", "/sessions/a/exec"]
    assert asked.count("/sessions/a/exec") == 2


@pytest.mark.parametrize("path", ["/run", "/sessions"])
def test_limits_that_the_grader_does_not_take_are_no_answer(path: str) -> None:
    refused = {"type": "urn:rkgrade:error:invalid-request", "detail": "too much", "field": "limits.memory_mb"}

    async def do(grader: AsyncGrader) -> None:
        with pytest.raises(GraderUnfit, match="these limits: too much"):
            await (PythonTool(grader)("print(1)") if path == "/run" else Terminal(grader).bash("ls"))

    with answering(lambda _: (422, {}, refused)) as url:
        with_grader(url, do)


def test_a_grader_that_is_gone_is_no_answer() -> None:
    async def do(grader: AsyncGrader) -> None:
        with pytest.raises(GraderUnreachable):
            await PythonTool(grader)("print(1)")

    with_grader("http://127.0.0.1:9", do, patience_s=0.5)


def test_of_long_texts_the_middle_is_left_out() -> None:
    assert clipped("abcdefgh", 8) == "abcdefgh"
    assert clipped("abcdefgh", 4) == "ab\n[4 characters left out]\ngh"


def test_templates_are_told_of_tools() -> None:
    assert [spec.schema()["function"]["name"] for spec in (PYTHON, BASH, SUBMIT)] == ["python", "bash", "submit"]
    assert PYTHON.schema()["function"]["parameters"]["required"] == ["code"]
    assert SUBMIT.schema()["function"]["parameters"]["required"] == []
