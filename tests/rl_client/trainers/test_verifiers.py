"""verifiers' own evaluation, with a policy that says what it was told to say, and a real grader."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rl_client.encoded import EncodedProblem
from service.contract import StdioProblem, Verdict
from tests.rl_client.answering import Asked, after_trouble, answering
from tests.rl_client.doubling import DOUBLE, ID, RIGHT, SMALL_ONLY, stored
from tests.rl_client.results import PROBLEM, graded
from tests.rl_client.trainers.venvs import ROOT, python_with
from tests.serving import metric

LONG = StdioProblem(kind="stdio", tests=DOUBLE.tests[2:])
LONG_ID = EncodedProblem.of(LONG).id

WRITE = "echo 'print(2 * int(input()))' > "

Turn = str | tuple[str, dict[str, Any]]
"""What the policy says, or the tool that it calls."""


@pytest.fixture(scope="module")
def verifiers() -> Path:
    """A Python that has verifiers 0.4, and uv, by which its harnesses are installed."""
    return python_with("verifiers", ("verifiers==0.4.0", "uv>=0.9,<1"), "verifiers==0.4.0")


@pytest.fixture(scope="module")
def url(url: str) -> str:
    stored(url, LONG)
    return url


def streamed(turn: Turn) -> bytes:
    """As a chat completion of OpenAI's is streamed."""
    delta: dict[str, Any] = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
    if not isinstance(turn, str):
        function = {"name": turn[0], "arguments": json.dumps(turn[1])}
        delta["tool_calls"] = [{"index": 0, "id": f"call_{turn[0]}", "type": "function", "function": function}]
    end = "stop" if isinstance(turn, str) else "tool_calls"
    common = {"id": "a", "object": "chat.completion.chunk", "created": 0, "model": "policy"}
    chunks = [
        {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
        {**common, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
    ]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"


def evaluate(
    verifiers: Path, folder: Path, url: str, rows: Sequence[tuple[list[Turn], object]], *flags: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Each row is what the policy says, and its label. Returns the trace of each, and all that tools answered."""
    heard: list[str] = []

    def reply(asked: Asked) -> tuple[int, dict[str, str], object]:
        messages = json.loads(asked.body)["messages"]
        heard.extend(str(one["content"]) for one in messages[-1:] if one["role"] == "tool")
        turns, _ = rows[int(next(one["content"] for one in messages if one["role"] == "user"))]
        said = sum(one["role"] == "assistant" for one in messages)
        return 200, {"Content-Type": "text/event-stream"}, streamed(turns[said])

    (folder / "rows.jsonl").write_text(
        "".join(
            json.dumps({"prompt": str(number), "label": row[1], "datasource": "apps"}) + "\n"
            for number, row in enumerate(rows)
        )
    )
    binaries = verifiers.parent
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{binaries}:{os.environ['PATH']}", "HOME": str(folder),
        "UV_CACHE_DIR": str(ROOT / ".venv" / "uv"),
    }  # fmt: skip
    with answering(reply) as policy:
        done = subprocess.run(
            [
                str(binaries / "vf-eval"), "@", str(ROOT / "examples/verifiers/eval.toml"), "--model", "policy",
                "--client.base_url", f"{policy}/v1", "--env.taskset.rows", str(folder / "rows.jsonl"),
                "--env.taskset.task.grader", url, "--num_rollouts", "1", "--no-rich",
                "--output_dir", str(folder / "out"), "--run.name", "run", *flags,
            ],
            env=environment, cwd=folder, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    episodes = map(json.loads, (folder / "out" / "run" / "traces.jsonl").read_text().splitlines())
    traces = [episode["traces"][0] for episode in episodes]
    return sorted(traces, key=lambda trace: trace["task"]["data"]["idx"]), heard


def score(trace: dict[str, Any]) -> float | None:
    reward = trace["rewards"].get("rkgrade")
    return None if reward is None else reward["score"]


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(1800)
def test_answers(verifiers: Path, url: str, tmp_path: Path) -> None:
    rows: list[tuple[list[Turn], object]] = [
        ([RIGHT], ID),
        ([SMALL_ONLY], ID),
        ([SMALL_ONLY], {"problem": ID, "reward": "r_k:2", "scale": "signed"}),
        (["I cannot."], ID),
        # No test is that short, and nobody said what that is worth.
        ([RIGHT], {"problem": LONG_ID, "reward": "r_k:2"}),
        ([RIGHT], "sha256:" + "0" * 64),
    ]
    traces, _ = evaluate(verifiers, tmp_path, url, rows)
    assert [score(trace) for trace in traces] == [1.0, 0.0, 1.0, 0.0, None, None]
    assert [trace["ok"] for trace in traces] == [True] * 4 + [False] * 2
    assert "r_k:2 has no tests" in traces[4]["errors"][0]["message"]
    assert "store it there first" in traces[5]["errors"][0]["message"]
    assert [trace["metrics"]["rkgrade_R_2"] for trace in traces[:4]] == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(1800)
def test_calls_of_python(verifiers: Path, url: str, tmp_path: Path) -> None:
    turns: list[Turn] = [("python", {"code": "print(6 * 7)"}), ("python", {"code": "print("}), RIGHT]
    traces, heard = evaluate(verifiers, tmp_path, url, [(turns, ID)], "--env.taskset.task.tools.kind", "python")
    assert [score(trace) for trace in traces] == [1.0]
    assert heard[0] == "completed. [stdout]\n42\n[/stdout]"
    assert "SyntaxError" in heard[1]


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(1800)
def test_work_in_a_terminal(verifiers: Path, url: str, tmp_path: Path) -> None:
    rows: list[tuple[list[Turn], object]] = [
        ([("bash", {"command": WRITE + "solution.py"}), "Done."], ID),
        ([("bash", {"command": WRITE + "a.py; echo 1 > b.py"}), ("submit", {"path": "a.py"}), "Done."], ID),
        ([("bash", {"command": "cat /etc/shadow"}), ("submit", {"path": "b.py"}), RIGHT], ID),
    ]
    traces, heard = evaluate(verifiers, tmp_path, url, rows, "--env.taskset.task.tools.kind", "terminal")
    assert [score(trace) for trace in traces] == [1.0, 1.0, 0.0]
    assert any("shadow" in told and "error: Exit status 1" in told for told in heard)
    # Nothing is left of them once they are graded.
    assert metric(url, "rkgrade_sessions_open") == 0


# ---------------------------------------------------------------------------------------------------------------
# Graders in trouble

ACCEPTED = graded((4, Verdict.ACCEPTED), (40, Verdict.ACCEPTED)).model_dump(mode="json")
FAULT = graded((4, Verdict.ACCEPTED), (40, Verdict.INTERNAL_ERROR)).model_dump(mode="json")


@pytest.mark.trainer
@pytest.mark.timeout(1800)
def test_a_fault_of_the_graders_is_an_error_unless_somebody_says_what_it_is_worth(
    verifiers: Path, tmp_path: Path
) -> None:
    rows: list[tuple[list[Turn], object]] = [
        ([RIGHT], {"problem": PROBLEM}),
        ([RIGHT], {"problem": PROBLEM, "fault": "retry"}),
    ]
    for name in ("alone", "worth"):
        (tmp_path / name).mkdir()
    with answering(lambda _: (200, {}, FAULT)) as url:
        alone, _ = evaluate(verifiers, tmp_path / "alone", url, rows)
        worth, _ = evaluate(verifiers, tmp_path / "worth", url, rows, "--env.taskset.task.unscored", "-0.25")
    assert [(trace["ok"], score(trace)) for trace in alone] == [(False, None)] * 2
    assert all("the grader failed at this program: internal_error" in one["errors"][0]["message"] for one in alone)
    assert [(trace["ok"], score(trace)) for trace in worth] == [(True, -0.25)] * 2
    assert [trace["metrics"]["rkgrade_rewarded"] for trace in worth] == [0.0] * 2


@pytest.mark.trainer
@pytest.mark.timeout(1800)
def test_a_grader_that_is_down_for_a_while_is_waited_for(verifiers: Path, tmp_path: Path) -> None:
    with answering(after_trouble(ACCEPTED)) as url:
        traces, _ = evaluate(verifiers, tmp_path, url, [([RIGHT], PROBLEM)] * 2)
    assert [(trace["ok"], score(trace)) for trace in traces] == [(True, 1.0)] * 2


@pytest.mark.trainer
@pytest.mark.timeout(1800)
def test_a_session_in_which_a_tool_failed_is_closed(verifiers: Path, tmp_path: Path) -> None:
    """It may be there still: what was lost could be an answer on its way."""
    closed: list[str] = []

    def reply(asked: Asked) -> tuple[int, dict[str, str], object]:
        until = "2026-01-01T00:00:00Z"
        match asked.method, asked.path.split("/")[1:]:
            case "POST", ["sessions"]:
                return 201, {}, {"id": "7", "expires_at": until, "closes_at": until, "cpu_s": 0}
            case "DELETE", ["sessions", session]:
                closed.append(session)
                return 200, {}, {}
        return 502, {}, {}

    rows: list[tuple[list[Turn], object]] = [([("bash", {"command": "ls"}), RIGHT], PROBLEM)]
    with answering(reply) as url:
        traces, heard = evaluate(verifiers, tmp_path, url, rows, "--env.taskset.task.tools.kind", "terminal")
    assert (closed, heard) == (["7"], ["error: the tool failed"])
    assert [(trace["ok"], score(trace)) for trace in traces] == [(False, None)]
    assert "a tool failed: the session is lost" in traces[0]["errors"][0]["message"]
