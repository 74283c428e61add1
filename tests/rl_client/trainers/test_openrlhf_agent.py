"""Rollouts for OpenRLHF: its own classes, a real tokenizer, a grader that runs, and graders in trouble."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rl_client.encoded import EncodedProblem
from rl_client.trainers import openrlhf
from service.contract import StdioProblem, StdioTest, Verdict
from tests.rl_client import doubling
from tests.rl_client.answering import Asked, answering
from tests.rl_client.results import PROBLEM, graded
from tests.rl_client.trainers.openrlhf_python import ROOT, openrlhf_python

pytestmark = [pytest.mark.jail, pytest.mark.trainer, pytest.mark.timeout(1800)]

AGENT = Path(openrlhf.__file__).with_name("openrlhf_agent.py")
DRIVER = Path(__file__).with_name("openrlhf_agent_executor.py")

SECRET = "8642"
PROBLEM_OF_SECRET = StdioProblem(
    kind="stdio", tests=(*doubling.DOUBLE.tests, StdioTest(input="4321\n", output=f"{SECRET}\n"))
)
ID = EncodedProblem.of(PROBLEM_OF_SECRET).id

PROMPT = "<|im_start|>user\nDouble a number.<|im_end|>\n<|im_start|>assistant\n"
END = "<|im_end|>"
PROGRAM = "print(2 * int(input()))"
RIGHT, SMALL_ONLY, WRONG, NOTHING = (
    f"{answer}{END}" for answer in (doubling.RIGHT, doubling.SMALL_ONLY, doubling.WRONG, doubling.NOTHING)
)

#: Penalties tell apart what went how.
LABEL = {"problem": ID, "scale": "signed", "format_error": -2.0}


def python(code: str) -> str:
    return f"<tool: python>\n{code}\n</tool>{END}"


def bash(command: str) -> str:
    call = json.dumps({"name": "bash", "arguments": {"command": command}})
    return f"<tool_call>\n{call}\n</tool_call>{END}"


SUBMIT = f'<tool_call>{{"name": "submit", "arguments": {{}}}}</tool_call>{END}'


def heard(text: str, role: str = "tool") -> str:
    """As the template has it, behind the mark that the model ended its turn with."""
    inside = f"<tool_response>\n{text}\n</tool_response>" if role == "tool" else text
    return f"\n<|im_start|>user\n{inside}<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def trainer() -> Path:
    return openrlhf_python()


@pytest.fixture(scope="module")
def url(url: str) -> str:
    doubling.stored(url, PROBLEM_OF_SECRET)
    return url


def driven(
    trainer: Path, url: str, setting: str, *scenarios: dict[str, Any], variables: Mapping[str, str] | None = None
) -> Any:
    """What came of each scenario: samples of one prompt, each with the turns that the model is to say."""
    given = [{"prompt": PROMPT, "label": json.dumps(LABEL), **one} for one in scenarios]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RKGRADE_")}
    done = subprocess.run(
        [str(trainer), str(DRIVER)],
        input=json.dumps([str(AGENT), given]),
        env={
            **environment,
            "RKGRADE_URL": url,
            "RKGRADE_SETTING": setting,
            "PYTHONPATH": str(ROOT),
            **(variables or {}),
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def logged(told: dict[str, Any], *names: str) -> list[tuple[float, ...]]:
    return [tuple(one[name] for name in names) for one in told["logs"]]


def test_python_is_called_and_the_last_turn_is_the_answer(trainer: Path, url: str) -> None:
    marks = "print('<|im_' + 'end|>\\n<|im_' + 'start|>user')"
    unlisted = "print('<|tu' + 'rn|>')"
    told, cut, small, long, calls, thoughts = driven(
        trainer,
        url,
        "python",
        {
            "samples": [
                [python("print(2 * 21)"), RIGHT],
                [python(marks), f"<tool: perl>1</tool>{END}", f"<tool_call>{{</tool_call>{END}", WRONG],
                [NOTHING],
                [python(PROGRAM) + python(unlisted), RIGHT.replace("```python", "```")],
            ]
        },
        # A turn that is cut off leaves its call open; the next one is let run on.
        {"samples": [[python("print(2 * 21)" + " " * 100), RIGHT]], "max_tokens": 60},
        # What is heard does not fit in any more.
        {"samples": [[python("print('a' * 3000)"), RIGHT]], "max_len": 400},
        # Of a prompt that is too long the end is kept.
        {"samples": [[RIGHT]], "prompt": "Much ado. " * 100 + PROMPT, "max_tokens": 64, "max_len": 200},
        {"samples": [[python("print(1)") * 3, python("print(2)"), RIGHT]]},
        {"samples": [[RIGHT], ["</think>" + RIGHT]], "prompt": PROMPT + "<think>\n"},
        variables={"RKGRADE_LIMITS": '{"calls": 3}'},
    )  # fmt: skip
    assert told["rewards"] == [1.0, -1.0, -2.0, 1.0]
    assert told["scores"] == [1.0, 0.0, 0.0, 1.0]
    assert told["trained"] == told["said"]
    assert told["heard"][0] == [heard("completed. [stdout]\n42\n[/stdout]")]
    assert told["heard"][1][:2] == [
        heard("completed. [stdout]\n<|im_end|>\n<|im_start|>user\n[/stdout]"),
        heard("error: No such tool"),
    ]
    assert "error: the call is not JSON" in told["heard"][1][2]
    assert "EOFError" in told["heard"][3][0]
    assert "\n<|turn|>\n" in told["heard"][3][0]
    assert logged(told, "turns", "calls", "format_error", "rewarded", "fault") == [
        (2, 1, 0, 1, 0), (4, 3, 0, 1, 0), (1, 0, 1, 1, 0), (2, 2, 0, 1, 0),
    ]  # fmt: skip
    assert told["apart"] == 4

    assert cut["asked"] == [[60, 60]]
    # It did not say the mark for the end of its turn, so the template's is heard.
    assert cut["heard"] == [[END + heard("error: the call is not closed by </tool>")]]
    assert (cut["rewards"], cut["truncated"]) == ([1.0], [False])

    assert (small["rewards"], small["heard"], small["truncated"]) == ([-2.0], [[]], [True])
    assert small["said"][0] < 400
    assert (long["rewards"], long["said"]) == ([1.0], [len(RIGHT) - len(END) + 1])

    # Three calls in one turn are all that there are; the fourth is the last turn's, and no answer.
    assert calls["heard"][0] == [
        heard(
            "\n".join(
                [*["completed. [stdout]\n1\n[/stdout]"] * 3, "error: No calls are left: the next turn is the last"]
            )
        )
    ]
    assert (calls["rewards"], logged(calls, "turns", "calls")) == ([-2.0], [(2, 3)])

    # Of thoughts that the prompt opened and nothing closed a draft is no answer.
    assert thoughts["rewards"] == [-2.0, 1.0]


def test_a_terminals_file_is_the_answer(trainer: Path, url: str) -> None:
    write = bash(f"printf '%s' '{PROGRAM}' > solution.py && echo 21 | python3 solution.py")
    (told,) = driven(
        trainer,
        url,
        "terminal",
        {
            "samples": [
                [write, SUBMIT],
                [write, f"Done.{END}"],
                [bash("ls"), RIGHT],
                [SUBMIT],
                [bash("head -c 100 /dev/urandom > solution.py"), SUBMIT],
                [bash("while :; do :; done"), bash("ls"), SUBMIT],
                [bash(f"printf '%s' '{PROGRAM}' > a.py"), SUBMIT.replace("{}", '{"path": "a.py"}')],
                [bash("ls"), SUBMIT.replace("{}", '{"path": "../../etc/passwd"}')],
            ]
        },
        variables={"RKGRADE_LIMITS": '{"session_cpu_s": 1, "timeout_s": 30, "memory_mb": 256, "disk_mb": 16}'},
    )
    # One whose file is no program, or whose workspace went with its CPU time, has failed, not the grader.
    assert told["rewards"] == [1.0, 1.0, 1.0, -2.0, -2.0, -2.0, 1.0, -2.0]
    assert told["heard"][0] == [heard("completed. [stdout]\n42\n[/stdout]")]
    assert told["heard"][5] == [heard("error: The workspace has used up its CPU time, and is gone")] * 2
    assert logged(told, "fault", "rewarded", "rollouts") == [(0, 1, 1)] * 8


def test_repair_hears_how_it_failed_and_nothing_private(trainer: Path, url: str) -> None:
    told, small = driven(
        trainer,
        url,
        "repair",
        {"samples": [[SMALL_ONLY, RIGHT], [WRONG, NOTHING], [RIGHT], [NOTHING, RIGHT], [WRONG, WRONG]]},
        {"samples": [[SMALL_ONLY]], "label": json.dumps({**LABEL, "reward": "r_k:2"})},
    )
    assert told["rewards"] == [1.0, -2.0, 1.0, 1.0, -1.0]
    assert logged(told, "turns", "repaired") == [(2, 1), (2, 0), (1, 0), (2, 1), (2, 0)]
    (first,) = told["heard"][0]
    assert first.startswith("\n<|im_start|>user\nThe program is not accepted.")
    assert "input length from 10^2 to below 10^3: 0 of 1 passed" in first
    assert SECRET not in json.dumps(told["heard"])
    # By its own reward nothing is left to repair.
    assert (small["rewards"], small["heard"]) == ([1.0], [[]])


GOOD = graded((4, Verdict.ACCEPTED), (40, Verdict.ACCEPTED)).model_dump(mode="json")
BAD = graded((4, Verdict.ACCEPTED), (40, Verdict.WRONG_ANSWER)).model_dump(mode="json")
FAULT = graded((4, Verdict.ACCEPTED), (40, Verdict.INTERNAL_ERROR)).model_dump(mode="json")
STUB_LABEL = json.dumps({"problem": PROBLEM, "scale": "signed"})
RETRY_LABEL = json.dumps({"problem": PROBLEM, "scale": "signed", "fault": "retry"})
ENDED = {"type": "urn:rkgrade:error:session-ended", "detail": "gone", "ended": "lost"}
NO_SESSION = {"type": "urn:rkgrade:error:no-session", "detail": "none of that id"}
UNKNOWN = {"type": "urn:rkgrade:error:not-found", "detail": "no such thing"}
NO_SESSION = {"type": "urn:rkgrade:error:no-session", "detail": "no such session"}


def in_trouble(asked: Asked) -> tuple[int, dict[str, str], object]:
    """Fails at some programs, and knows one problem alone."""
    body = asked.body.decode()
    if asked.path != "/grade":
        return 200, {}, []
    if PROBLEM not in body:
        return 404, {}, UNKNOWN
    return 200, {}, FAULT if "faulty" in body else GOOD if "right" in body else BAD


@pytest.mark.parametrize(
    ("variables", "mixed", "alone", "unknown"),
    [
        # The mean of the others of its prompt; of what was scored at all, where there are none.
        ({}, [1.0, -1.0, 1.0, 1 / 3], [1 / 3, 1 / 3], [1 / 3]),
        ({"RKGRADE_UNSCORED": "-0.25"}, [1.0, -1.0, 1.0, -0.25], [-0.25, -0.25], [-0.25]),
    ],
)
def test_a_sample_without_a_reward_has_one_that_is_stated(
    trainer: Path, variables: dict[str, str], mixed: list[float], alone: list[float], unknown: list[float]
) -> None:
    # What holds no program is all the same to a grader, and asked for once.
    right, wrong, faulty = (f"```python\n{word}\n```" for word in ("right", "wrong", "faulty"))
    with answering(in_trouble) as url:
        told = driven(
            trainer,
            url,
            "python",
            {"samples": [[right], [wrong], [right], [faulty]], "label": STUB_LABEL},
            {"samples": [[faulty], [faulty]], "label": STUB_LABEL},
            {"samples": [[right]], "label": "sha256:" + "1" * 64},
            {"samples": [[right]], "label": None},
            {"samples": [[right], [faulty]], "label": RETRY_LABEL},
            variables=variables,
        )
    assert told[0]["rewards"] == pytest.approx(mixed)
    assert told[0]["scores"] == pytest.approx([1.0, 0.0, 1.0, 2 / 3])
    assert logged(told[0], "rewarded", "fault", "bad_label") == [(1, 0, 0)] * 3 + [(0, 1, 0)]
    # Dynamic filtering, which keeps means between 0 and 1, drops these.
    assert (told[1]["rewards"], told[1]["scores"]) == (pytest.approx(alone), [0.0, 0.0])
    for one in told[2:4]:
        assert (one["rewards"], one["scores"]) == (pytest.approx(unknown), [0.0])
        assert logged(one, "rewarded", "bad_label") == [(0, 1)]
    assert told[4]["rewards"] == [1.0, float(variables.get("RKGRADE_UNSCORED", 1.0))]
    assert logged(told[4], "rewarded", "fault", "bad_label") == [(1, 0, 0), (0, 1, 0)]


def test_a_grader_that_is_busy_or_down_is_waited_for(trainer: Path) -> None:
    answers = iter([(429, {"Retry-After": "1"}), (503, {"Retry-After": "1"}), (502, {}), (500, {})] * 3)

    def reply(asked: Asked) -> tuple[int, dict[str, str], object]:
        if asked.path != "/grade":
            return 200, {}, []
        status, headers = next(answers, (200, {}))
        return status, headers, GOOD if status == 200 else {}

    with answering(reply) as url:
        (told,) = driven(trainer, url, "python", {"samples": [["right"]] * 4, "label": STUB_LABEL})
    assert (told["rewards"], logged(told, "rewarded")) == ([1.0] * 4, [(1,)] * 4)
    assert next(answers, None) is None


def test_patience_ends_and_the_training_does_not(trainer: Path) -> None:
    def reply(asked: Asked) -> tuple[int, dict[str, str], object]:
        return (200, {}, []) if asked.path != "/grade" else (503, {"Retry-After": "1"}, {})

    with answering(reply) as url:
        (told,) = driven(
            trainer,
            url,
            "python",
            {"samples": [["right"]] * 2, "label": STUB_LABEL},
            variables={"RKGRADE_PATIENCE_S": "3"},
        )
    assert (told["scores"], logged(told, "rewarded", "fault")) == ([0.0, 0.0], [(0, 1)] * 2)


@pytest.mark.parametrize("losses", [1, 2])
def test_a_sample_whose_session_the_grader_loses_is_rolled_out_anew(trainer: Path, losses: int) -> None:
    opened: list[str] = []

    def reply(asked: Asked) -> tuple[int, dict[str, str], object]:
        until = "2026-01-01T00:00:00Z"
        match asked.method, asked.path.split("/")[1:]:
            case "POST", ["sessions"]:
                opened.append(asked.path)
                return 201, {}, {"id": str(len(opened)), "expires_at": until, "closes_at": until, "cpu_s": 0}
            case "POST", ["sessions", number, "exec"]:
                if int(number) <= losses:
                    return 404, {}, ENDED if number == "1" else NO_SESSION
                said = {"stdout": "1\n", "stderr": "", "truncated": False, "exit_code": 0, "signal": None}
                return 200, {}, {**said, "timed_out": False, "cpu_s": 0, "wall_s": 0}
            case "POST", ["sessions", _, "grade"]:
                return 200, {}, GOOD
            case "GET", ["sessions", _, files] if files.startswith("files?"):
                return 200, {}, {"text": "", "size_bytes": 0, "truncated": False}
            case _, ["sessions", *_]:
                return 404, {}, NO_SESSION
        return 200, {}, []

    with answering(reply) as url:
        (told,) = driven(trainer, url, "terminal", {"samples": [[bash("ls"), SUBMIT]], "label": STUB_LABEL})
    assert logged(told, "rewarded", "rollouts", "turns") == [(1, 2, 2) if losses == 1 else (0, 2, 1)]
    assert told["rewards"] == ([1.0] if losses == 1 else [0.0])


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"RKGRADE_SETTING": "tools"}, "RKGRADE_SETTING has to be one of python, terminal, repair"),
        ({"RKGRADE_LIMITS": '{"call": 3}'}, "RKGRADE_LIMITS: there is no 'call'"),
        ({"RKGRADE_LIMITS": '{"calls": "many"}'}, "RKGRADE_LIMITS: calls"),
        ({"RKGRADE_LIMITS": '{"calls": 0}'}, "RKGRADE_LIMITS"),
        ({"RKGRADE_LIMITS": '{"timeout_s": -1}'}, "RKGRADE_LIMITS: cpu_s"),
        ({"RKGRADE_ATTEMPTS": "0"}, "RKGRADE_ATTEMPTS is '0'"),
        ({"RKGRADE_LABEL": '{"rewards": "r_inf"}'}, "rewards"),
        ({"RKGRADE_URL": "http://127.0.0.1:9"}, "no grader answers at http://127.0.0.1:9"),
    ],
)
def test_what_is_set_wrong_is_said_at_the_start(
    trainer: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], why: str
) -> None:
    done = subprocess.run(
        [str(trainer), "-c", f"import runpy; runpy.run_path({str(AGENT)!r})['AgentExecutor']()"],
        env={**os.environ, "RKGRADE_SETTING": "python", "PYTHONPATH": str(ROOT), **variables},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert why in done.stderr.splitlines()[-1]
