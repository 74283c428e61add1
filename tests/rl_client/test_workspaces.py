"""What is graded of a terminal: the file that was submitted, the solution's, or the last turn's text."""

from __future__ import annotations

import asyncio

import pytest

from rl_client.async_client import AsyncGrader
from rl_client.encoded import EncodedProblem
from rl_client.episodes import score_workspace
from rl_client.errors import SessionLost
from rl_client.rollout import Scorer
from rl_client.tools import Terminal, ToolLimits
from service.contract import StdioProblem, StdioTest
from tests.serving import Server

ONE = StdioProblem(kind="stdio", tests=(StdioTest(input="", output="1\n"),))
RIGHT = "```python\nprint(1)\n```"


@pytest.mark.jail
@pytest.mark.parametrize(
    ("command", "path", "text", "verdict"),
    [
        ("echo 'print(1)' > solution.py", "", "", "accepted"),
        ("echo 'print(2)' > solution.py", "", RIGHT, "wrong_answer"),
        ("echo 'print(1)' > other.py", " other.py ", "", "accepted"),
        ("true", "", RIGHT, "accepted"),
        (None, "", RIGHT, "accepted"),
        ("true", "none.py", RIGHT, "format_error"),
        ("mkdir solution.py", "", RIGHT, "format_error"),
        ("ln -s /etc/passwd solution.py", "", "", "format_error"),
        ("while :; do :; done", "", RIGHT, "accepted"),
    ],
)
def test_what_is_graded(grader: Server, command: str | None, path: str, text: str, verdict: str) -> None:
    async def work() -> str:
        async with AsyncGrader(grader.url) as client:
            limits = ToolLimits(memory_mb=256, disk_mb=16, timeout_s=20.0, session_cpu_s=1.0)
            await client.put_problem(problem := EncodedProblem.of(ONE))
            terminal = Terminal(client, limits)
            try:
                if command is not None:
                    await terminal.bash(command)
                return str(
                    (await score_workspace(Scorer(client), terminal, problem.id, path=path, text=text)).result.verdict
                )
            finally:
                await terminal.close()

    assert asyncio.run(work()) == verdict


@pytest.mark.jail
@pytest.mark.parametrize(
    ("language", "file", "program"),
    [
        ("python3", "solution.py", "print(1)"),
        ("Python-Exec", "solution.py", "print(1)"),
        ("C++", "solution.cpp", 'int main() { __builtin_puts("1"); }'),
        ("gcc", "solution.c", 'int main() { return __builtin_puts("1") < 0; }'),
    ],
)
def test_the_solutions_file_goes_by_whatever_the_label_calls_its_language(
    grader: Server, language: str, file: str, program: str
) -> None:
    async def work() -> str:
        async with AsyncGrader(grader.url) as client:
            await client.put_problem(problem := EncodedProblem.of(ONE))
            terminal = Terminal(client, ToolLimits(memory_mb=256, disk_mb=16))
            label = {"problem": problem.id, "language": language}
            try:
                await terminal.write(file, program)
                return str((await score_workspace(Scorer(client), terminal, label, path="", text="")).result.verdict)
            finally:
                await terminal.close()

    assert asyncio.run(work()) == "accepted"


@pytest.mark.jail
def test_a_session_that_was_lost_is_no_answer(grader: Server) -> None:
    async def work() -> None:
        async with AsyncGrader(grader.url) as client:
            await client.put_problem(problem := EncodedProblem.of(ONE))
            terminal = Terminal(client)
            await terminal.bash("echo 'print(1)' > solution.py")
            assert terminal.session is not None
            await terminal.session.close()
            with pytest.raises(SessionLost):
                await score_workspace(Scorer(client), terminal, problem.id, path="", text=RIGHT)

    asyncio.run(work())


@pytest.mark.jail
@pytest.mark.parametrize("path", ["", "solution.py"])
def test_a_grader_that_was_started_anew_has_lost_its_sessions(grader: Server, path: str) -> None:
    """It knows them no more, which is neither a mistake of the model's nor an answer without a program."""

    async def work() -> None:
        async with AsyncGrader(grader.url) as client:
            await client.put_problem(problem := EncodedProblem.of(ONE))
            terminal = Terminal(client, session=client.session("0" * 32))
            with pytest.raises(SessionLost):
                await terminal.bash("true")
            with pytest.raises(SessionLost):
                await terminal.read("solution.py")
            with pytest.raises(SessionLost) as lost:
                await score_workspace(Scorer(client), terminal, problem.id, path=path, text=RIGHT)
            assert not lost.value.is_own
            await client.check_sessions()

    asyncio.run(work())
