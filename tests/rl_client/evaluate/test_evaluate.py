"""Evaluations by a real grader: sampled, graded, reported, exported, and gone on with."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rl_client.answering import answering
from tests.rl_client.datasets.test_livecodebench import CALL, STDIN
from tests.rl_client.evaluate.models import NONE, RIGHT, SLOW, WRONG, Model, lines, report, rkgrade, row, write
from tests.serving import RKGRADE, Server

pytestmark = pytest.mark.jail

ROWS = [row("twice", "easy"), row("double", "hard"), row("thrice", "hard", factor=3)]
TABLE = {"twice": [RIGHT, RIGHT, SLOW, NONE], "double": [RIGHT, WRONG, SLOW, RIGHT], "thrice": [WRONG, RIGHT]}


def test_an_evaluation_is_whole_and_a_second_one_does_nothing_twice(tmp_path: Path, grader: Server) -> None:
    model, out, codes, solutions = Model(TABLE), tmp_path / "out", tmp_path / "lcb.json", tmp_path / "evalplus.jsonl"
    file = write(tmp_path / "rows.jsonl", ROWS)
    command = ["problems", file, "--out", out, "--url", grader.url, "--chunk", 4, "--k", 1, "--k", 3]
    with answering(model) as url:
        command += ["--server", f"{url}/v1"]
        done = rkgrade(*command, "--samples", 8, "--livecodebench", codes, "--evalplus", solutions)
        assert (done.exit_code, done.stderr) == (0, "")
        assert model.asked_for() == {"twice": 8, "double": 8, "thrice": 8}
        assert len({body["seed"] for body in model.asked}) == 6

        found = report(out)
        whole, easy, hard = found.strata
        assert {one.key: list(one.categories.values()) for one in found.problems} == {
            "twice": [4, 2, 0, 2],
            "double": [4, 2, 2, 0],
            "thrice": [0, 0, 8, 0],
        }
        assert (easy.solve_rate.mean, hard.solve_rate.mean, whole.solve_rate.mean) == (0.5, 0.25, pytest.approx(1 / 3))
        # The short test is one of T_1, which SLOW passes; of double's wrong program, too, it is the one it passes.
        assert (easy.rewards["R_1"].mean, hard.rewards["R_1"].mean, hard.rewards["R_2"].mean) == (0.75, 0.5, 0.25)
        # 1 - C(4, 3) / C(8, 3) of two problems, 0 of the third.
        assert whole.pass_at[3].mean == pytest.approx(2 / 3 * 13 / 14)
        assert (whole.solved, found.samples, found.programs) == (2, 24, 5)
        assert (found.costs.requests, found.costs.prompt_tokens, found.costs.completion_tokens) == (6, 60, 120)
        assert re.search(r"^solve rate +0\.333 \[0\.000, 0\.500\] +0\.500 +0\.250 \[", done.stdout, re.M)

        before = [(out / name).read_bytes() for name in ("generations.jsonl", "grades.jsonl")]
        # Twice and double are the same problem to the grader.
        assert len(lines(out / "grades.jsonl")) == 6
        again = rkgrade(*command, "--samples", 8)
        assert (again.stdout, len(model.asked)) == (done.stdout, 6)
        assert [(out / name).read_bytes() for name in ("generations.jsonl", "grades.jsonl")] == before

        assert rkgrade(*command, "--samples", 9).exit_code == 0
        assert model.asked_for() == {"twice": 9, "double": 9, "thrice": 9}
        assert report(out).problems[0].samples == 9

    right = "print(2 * int(input()))\n"
    assert lines(codes)[0][0] == {"question_id": "double", "code_list": [right, "print(2)\n", SLOW[10:-3], right] * 2}
    assert [one["task_id"] for one in lines(solutions)] == ["twice"] * 8 + ["double"] * 8 + ["thrice"] * 8
    assert lines(solutions)[3] == {"task_id": "twice", "solution": ""}

    completions = [
        *({"key": "double", "completion": text} for text in TABLE["double"]),
        *({"problem_id": found.problems[0].problem_id, "source": text} for text in (right, "print(7)")),
        {"key": "elsewhere", "source": "print(7)"},
    ]
    given = write(tmp_path / "given.jsonl", completions)
    taken = rkgrade("problems", file, "--out", tmp_path / "2", "--url", grader.url, "--completions", given, "--k", 2)
    assert (taken.exit_code, taken.stderr) == (
        0,
        "rkgrade: 1 completion of problems that are not among these: left out\n",
    )
    assert {one.key: list(one.categories.values()) for one in report(tmp_path / "2").problems} == {
        "twice": [1, 0, 1, 0],
        # By its id a problem is meant wherever it is.
        "double": [3, 1, 2, 0],
        "thrice": [0, 0, 0, 0],
    }
    assert report(tmp_path / "2").problems_without_samples == 1
    thoughts = [f"{RIGHT} and so on", f"{WRONG}</think>{RIGHT}", RIGHT]
    given = write(tmp_path / "given.jsonl", [{"key": "double", "completion": text} for text in thoughts])
    thinks = ["--completions", given, "--thinking"]
    thought = rkgrade("problems", file, "--out", tmp_path / "3", "--url", grader.url, *thinks)
    assert (thought.exit_code, "no intervals: they take two problems" in thought.stdout) == (0, True)
    assert list(report(tmp_path / "3").problems[1].categories.values()) == [1, 0, 0, 2]
    given = write(tmp_path / "given.jsonl", completions)
    few = rkgrade("problems", file, "--out", tmp_path / "2", "--url", grader.url, "--completions", given, "--k", 3)
    assert (few.exit_code, few.stderr.splitlines()[-1]) == (
        2,
        "rkgrade: --k: pass@3 needs 3 samples of each problem, and there are 2",
    )


def test_a_kill_loses_nothing_that_was_kept_and_nothing_is_done_twice(tmp_path: Path, grader: Server) -> None:
    """Killed with two requests under way, both files torn in the middle of a line."""
    held = threading.Event()
    model = Model(TABLE, before=lambda count: None if count <= 3 else _wait(held))
    out, file = tmp_path / "out", write(tmp_path / "rows.jsonl", ROWS)
    with answering(model) as url:
        command: list[Any] = ["problems", file, "--out", out, "--url", grader.url, "--server", f"{url}/v1"]
        command += ["--samples", 8, "--chunk", 4, "--concurrency", 2]
        process = subprocess.Popen([RKGRADE, "evaluate", *map(str, command)])
        _until(
            lambda: (
                len(model.asked) == 5 and _count(out / "generations.jsonl") == 12 and _count(out / "grades.jsonl") > 0
            )
        )
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        for name in ("generations.jsonl", "grades.jsonl"):
            with (out / name).open("ab") as torn:
                torn.write((out / name).read_bytes()[:100])
        graded = lines_that_are_whole(out / "grades.jsonl")
        held.set()

        assert rkgrade(*command).exit_code == 0
    samples = [(one["task"], one["sample"]) for one in lines(out / "generations.jsonl")]
    assert (len(samples), len(set(samples))) == (24, 24)
    # What was under way is asked for again, by the same seeds; nothing else is.
    seeds = [body["seed"] for body in model.asked]
    assert (len(seeds), len(set(seeds))) == (8, 6)
    assert set(seeds[3:5]) < set(seeds[5:])
    grades = lines_that_are_whole(out / "grades.jsonl")
    assert (len(grades), grades[: len(graded)]) == (6, graded)
    assert len({one["grade"] for one in lines(out / "grades.jsonl")}) == 6
    assert [list(one.categories.values()) for one in report(out).problems] == [[4, 2, 0, 2], [4, 2, 2, 0], [0, 0, 8, 0]]


def lines_that_are_whole(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _wait(held: threading.Event) -> None:
    assert held.wait(60)


def _until(holds: Any) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_function_of_livecodebench_is_asked_for_with_its_starter(tmp_path: Path, grader: Server) -> None:
    public = [{"input": "[1,2]\n3", "output": "6", "testtype": "functional"}]
    one = CALL | {"public_test_cases": json.dumps(public), "private_test_cases": ""}
    answer = "```python\nclass Solution:\n    def find(self, nums, k):\n        return sum(nums) + k\n```"
    model, out = Model({CALL["starter_code"].rstrip(): [answer, NONE]}), tmp_path / "out"
    file = write(tmp_path / "rows.jsonl", [one, STDIN | {"question_content": ""}])
    with answering(model) as url:
        command = ("livecodebench", file, "--out", out, "--url", grader.url, "--server", f"{url}/v1", "--samples", 2)
        done = rkgrade(*command, "--api", "completions")
    assert (done.exit_code, done.stderr) == (1, f"rkgrade: {file} row 1: question_content: empty\n")
    assert model.asked[0]["prompt"].startswith("### Question:\nAdd.\n\n### Format: Complete this Python 3 code")
    [problem] = report(out).problems
    assert (problem.key, problem.difficulty, problem.correct, problem.samples) == ("2777", "easy", 1, 2)


def test_rollouts_with_tools_are_kept_as_answers(tmp_path: Path, grader: Server) -> None:
    """Twice by Python and an answer; double by a terminal and a file that is submitted, and one that is not there."""
    file = write(tmp_path / "rows.jsonl", ROWS[:2])

    def turn(*texts: str) -> Any:
        return lambda body: texts[sum(one["role"] == "assistant" for one in body["messages"])]

    write_file = "<tool: bash>\necho 'print(2 * int(input()))' > a.py\n</tool>"
    turns = {
        "tools": turn("<tool: python>\nprint(2 * 3)\n</tool>", RIGHT),
        "agentic": turn(write_file, "<tool: submit>\na.py\n</tool>"),
    }
    for setting, right in turns.items():
        model, out = Model({"twice": right, "double": turn(f"{WRONG}")}), tmp_path / setting
        with answering(model) as url:
            command = ["problems", file, "--out", out, "--url", grader.url, "--server", f"{url}/v1"]
            done = rkgrade(*command, "--setting", setting, "--samples", 2)
            assert (done.exit_code, len(model.asked)) == (0, 6), done.stderr
        found, kept = report(out), lines(out / "generations.jsonl")
        assert [one.correct for one in found.problems] == [2, 0]
        assert (found.costs.turns, found.costs.calls, found.costs.requests) == (6, 2, 6)
        [one] = [one for one in kept if (one["key"], one["sample"]) == ("twice", 0)]
        assert [message["role"] for message in one["conversation"]][:4] == ["system", "user", "assistant", "user"]
        assert one["conversation"][3]["content"].startswith("completed.")
        assert (one["turns"], one.get("source")) == (2, "print(2 * int(input()))\n" if setting == "agentic" else None)
