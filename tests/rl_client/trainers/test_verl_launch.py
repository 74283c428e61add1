"""What starts verl (examples/verl): settings that verl has, rows that it reads, and what its tool cannot be told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rl_client.results import PROBLEM
from tests.rl_client.trainers.test_verl_reward import told_by
from tests.rl_client.trainers.test_verl_reward import verl as verl
from tests.rl_client.trainers.venvs import ROOT

EXAMPLES = ROOT / "examples" / "verl"
CONFIG = Path(__file__).with_name("verl_config.py")

#: Stands where Python would, and says what it would be started with.
ECHO = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"


def arguments_of_grpo(folder: Path) -> list[str]:
    echo = folder / "echo"
    echo.write_text(ECHO)
    echo.chmod(0o755)
    environment = {"PYTHON": str(echo), "MODEL": str(folder), "DATA": str(folder), "REWARD": "r_k:3"}
    done = subprocess.run(
        [str(EXAMPLES / "grpo.sh"), "trainer.n_gpus_per_node=2"], env={**os.environ, **environment},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    module, *arguments = json.loads(done.stdout)[1:]
    assert module == "verl.trainer.main_ppo"
    return [str(one) for one in arguments]


@pytest.mark.trainer
@pytest.mark.timeout(1500)
def test_verl_has_the_settings_of_the_script_and_reads_the_rows(verl: Path, tmp_path: Path) -> None:
    turns = [{"role": "system", "content": "Write Python."}, {"role": "user", "content": "Double it."}]
    lines = [
        {"prompt": turns, "label": PROBLEM, "datasource": "apps"},
        {"prompt": turns, "label": {"problem": PROBLEM, "reward": "r_k:2"}},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    train = tmp_path / "train.parquet"
    rows = [
        sys.executable,
        str(EXAMPLES / "rows.py"),
        str(tmp_path / "rows.jsonl"),
        str(train),
        "--tool",
    ]
    subprocess.run(rows, check=True, timeout=60)
    wrong = [{"type": "native", "timeout": 3}, {"type": "native", "patience_s": "long"}]
    given = {"arguments": arguments_of_grpo(tmp_path), "files": [str(train)], "wrong": wrong}

    told = told_by(verl, CONFIG, json.dumps(given))

    assert told["reward"] == {"url": "http://127.0.0.1:8000", "label": {"reward": "r_k:3"}}
    assert (told["function"], told["manager"], told["tools"]) == ("compute_score", "naive", ["python"])
    first, second = told["rows"]
    assert first["raw_prompt"] == turns
    assert (first["agent_name"], first["data_source"]) == ("tool_agent", "apps")
    assert first["reward_model"]["ground_truth"] == PROBLEM
    assert json.loads(second["reward_model"]["ground_truth"]) == lines[1]["label"]
    assert told["refused"] == [
        "the tool has no setting 'timeout': there are url, patience_s, calls, timeout_s, memory_mb, observation_chars",
        "patience_s is 'long', which is no number",
    ]
