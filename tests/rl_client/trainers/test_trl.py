"""TRL's own GRPOTrainer on a CPU: a policy of random weights learns from a real grader, with and without tools."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rl_client import doubling
from tests.rl_client.doubling import ID
from tests.rl_client.trainers.trl_python import trl_python
from tests.rl_client.trainers.venvs import ROOT
from tests.serving import metric

POLICY = Path(__file__).with_name("trl_policy.py")


def call(name: str, **arguments: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


RIGHT, SMALL_ONLY, WRONG = (f"{answer}\n" for answer in (doubling.RIGHT, doubling.SMALL_ONLY, doubling.WRONG))
ALSO_RIGHT = "```python\nimport sys\nprint(2 * int(sys.stdin.read()))\n```\n"
COMPUTE = call("python", code="print(6 * 7)")
DIE = call("python", code="import os; os._exit(3)")
WRITE = call("bash", command="echo 'print(2 * int(input()))' > solution.py")
ESCAPE = call("bash", command="cat /etc/shadow; curl http://127.0.0.1:8000")
SUBMIT = call("submit")


@pytest.fixture(scope="module")
def trl() -> Path:
    """A Python that has TRL 1.16."""
    return trl_python()


def train(trl: Path, url: str, folder: Path, words: list[str], labels: list[str], *flags: str) -> dict[str, Any]:
    """Two steps of `examples/trl/train.py`: what TRL logged of each, and how many tensors changed."""
    # Spinning threads of OpenMP take a busy machine ten times as long as one does.
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    policy, trained, rows = folder / "policy", folder / "trained", folder / "rows.jsonl"
    policy.mkdir()
    _done([str(trl), str(POLICY)], environment, json.dumps({"folder": str(policy), "words": words}))
    prompt = [{"role": "user", "content": "Double a number."}]
    rows.write_text(
        "".join(json.dumps({"prompt": prompt, "label": label, "datasource": "apps"}) + "\n" for label in labels)
    )
    suppressed = json.loads((policy / "suppress.json").read_text())
    _done(
        [
            str(trl), str(ROOT / "examples/trl/train.py"), "--rows", str(rows), "--url", url,
            "--model_name_or_path", str(policy), "--output_dir", str(trained), "--report_to", "none", "--use_cpu",
            "--bf16", "false", "--max_steps", "2", "--per_device_train_batch_size", "8", "--num_generations", "8",
            "--learning_rate", "0.01", "--logging_steps", "1", "--save_strategy", "no", "--seed", "1",
            "--generation_kwargs", json.dumps({"suppress_tokens": suppressed}), *flags,
        ],
        environment,
    )  # fmt: skip
    before, after = (_tensors(one / "model.safetensors") for one in (policy, trained))
    assert before.keys() == after.keys()
    return {
        "steps": json.loads((trained / "trainer_state.json").read_text())["log_history"][:2],
        "unchanged": [name for name in before if before[name] == after[name]],
    }


def _done(command: list[str], environment: dict[str, str], given: str = "") -> None:
    done = subprocess.run(
        command, input=given, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


def _tensors(path: Path) -> dict[str, bytes]:
    """The format of safetensors: the length of a JSON header (8 bytes), that header, and the data."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    return {
        name: content[8 + length + begin : 8 + length + end]
        for name, (begin, end) in ((name, row["data_offsets"]) for name, row in header.items())
    }


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(1800)
def test_two_steps_on_answers(trl: Path, url: str, tmp_path: Path) -> None:
    labels = [ID, json.dumps({"problem": ID, "reward": "r_inf"})] * 2
    words = [RIGHT, SMALL_ONLY, WRONG]
    told = train(trl, url, tmp_path, words, labels, "--reward", "r_k:2", "--max_completion_length", "4")
    assert told["unchanged"] == []
    for step in told["steps"]:
        assert step["rewards/rkgrade/mean"] == step["reward"]
        assert 0 < step["reward"] < 1 and step["reward_std"] > 0 and step["grad_norm"] > 0
        assert (step["rkgrade/rewarded"], step["rkgrade/fault"]) == (1.0, 0.0)
        assert step["rkgrade/accepted"] + step["rkgrade/wrong_answer"] + step["rkgrade/format_error"] == pytest.approx(
            1
        )


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("tools", "words"),
    [("python", [RIGHT, ALSO_RIGHT, WRONG, COMPUTE, DIE]), ("terminal", [RIGHT, WRONG, WRITE, ESCAPE, SUBMIT])],
)
def test_two_steps_with_tools(trl: Path, url: str, tmp_path: Path, tools: str, words: list[str]) -> None:
    told = train(
        trl, url, tmp_path, words, [ID] * 4, "--tools", tools, "--max_completion_length", "384",
        "--max_tool_calling_iterations", "3",
    )  # fmt: skip
    assert told["unchanged"] == []
    for step in told["steps"]:
        assert step["tools/call_frequency"] > 0 and step["tools/failure_frequency"] == 0
        assert 0 <= step["reward"] <= 1
        assert (step["rkgrade/rewarded"], step["rkgrade/fault"]) == (1.0, 0.0)
    assert any(0 < step["reward"] < 1 and step["grad_norm"] > 0 for step in told["steps"])
    assert metric(url, "rkgrade_sessions_open") == 0
