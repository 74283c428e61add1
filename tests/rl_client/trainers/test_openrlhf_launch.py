"""What starts OpenRLHF (examples/openrlhf): flags that its own parser takes, and prompts that it reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rl_client.labels import parse_label
from tests.rl_client.trainers.openrlhf_python import ROOT, openrlhf_python

EXAMPLES = ROOT / "examples" / "openrlhf"
PARSER = Path(__file__).with_name("openrlhf_parser.py")


@pytest.fixture(scope="module")
def trainer() -> Path:
    return openrlhf_python()


def started(script: str, trainer: Path, tmp_path: Path, *flags: str, **variables: str) -> list[Any]:
    """What OpenRLHF would train with, for each run that the script starts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RKGRADE_", "RAY_"))}
    done = subprocess.run(
        [str(EXAMPLES / script), *flags],
        env={
            **environment,
            "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}",
            "PYTHONPATH": str(ROOT),
            "LAUNCH": f"{trainer} {PARSER}",
            "MODEL": "sft",
            "PROMPTS": "prompts.jsonl",
            "OUTPUT": str(tmp_path / "runs"),
            **variables,
        },
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.trainer
@pytest.mark.timeout(1200)
def test_a_sweep_is_a_run_for_each_rung_from_one_checkpoint(trainer: Path, tmp_path: Path) -> None:
    runs = started("sweep", trainer, tmp_path, "--train.seed", "7", GRADER="http://grader:8000", RUNGS="1 3 inf")
    labels = [
        parse_label({"problem": "sha256:" + "0" * 64}, json.loads(one["variables"]["RKGRADE_LABEL"])) for one in runs
    ]
    assert [(one.reward, one.empty, one.fault) for one in labels] == [
        ("r_k:1", "next", "retry"), ("r_k:3", "next", "retry"), ("r_inf", "next", "retry"),
    ]  # fmt: skip
    arguments = [one["arguments"] for one in runs]
    assert {one["actor"]["model_name_or_path"] for one in arguments} == {"sft"}
    assert {one["train"]["seed"] for one in arguments} == {7}
    assert [Path(one["ckpt"]["output_dir"]).name for one in arguments] == ["R_1", "R_3", "R_inf"]
    assert {(one["data"]["input_key"], one["data"]["label_key"]) for one in arguments} == {("prompt", "label")}
    (reward,) = arguments[0]["reward"]["remote_url"]
    assert Path(reward).name == "openrlhf_reward.py"
    assert Path(reward).exists()
    assert {one["variables"]["RKGRADE_URL"] for one in runs} == {"http://grader:8000"}
    # What has been through is not run again.
    assert started("sweep", trainer, tmp_path, RUNGS="1 3") == []


@pytest.mark.trainer
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("setting", ["python", "terminal", "repair"])
def test_a_setting_with_turns_has_the_agent(trainer: Path, tmp_path: Path, setting: str) -> None:
    (run,) = started("train", trainer, tmp_path, SETTING=setting, GPUS="2")
    assert run["variables"]["RKGRADE_SETTING"] == setting
    assert run["arguments"]["reward"]["remote_url"] == ["agent"]
    agent = Path(run["arguments"]["train"]["agent_func_path"])
    assert (agent.name, agent.exists()) == ("openrlhf_agent.py", True)
    assert run["arguments"]["vllm"]["num_engines"] == 2


@pytest.mark.trainer
@pytest.mark.timeout(1200)
def test_a_flag_that_openrlhf_does_not_know_is_an_error(trainer: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="unrecognized arguments: --remote_rm_url"):
        started("train", trainer, tmp_path, "--remote_rm_url", "http://grader:8000")


def test_on_a_cluster_the_variables_go_along_and_no_command_line_has_the_token(tmp_path: Path) -> None:
    """`ray` here writes down what it is given: its arguments, and the file that it is told to read."""
    ray = tmp_path / "bin" / "ray"
    ray.parent.mkdir()
    told = "import json, sys; print(json.dumps([sys.argv[1:], json.load(open(sys.argv[4]))]))"
    ray.write_text(f"#!/bin/sh\npython3 -c '{told}' \"$@\"\n")
    ray.chmod(0o755)
    done = subprocess.run(
        [str(EXAMPLES / "train"), "--train.seed", "7"],
        env={
            "PATH": f"{ray.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
            "RAY_ADDRESS": "http://head:8265", "MODEL": "sft", "PROMPTS": "prompts.jsonl", "OUTPUT": "runs",
            "GRADER": "http://grader:8000", "REWARD": "r_k:3", "RKGRADE_TOKEN": "s3cret",
        },
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    arguments, environment = json.loads(done.stdout)
    assert [*arguments[:3], *arguments[4:8]] == [
        "job", "submit", "--runtime-env", "--", "python3", "-m", "openrlhf.cli.train_ppo_ray",
    ]  # fmt: skip
    assert arguments[-2:] == ["--train.seed", "7"]
    assert not any("s3cret" in one for one in arguments)
    variables = environment["env_vars"]
    assert (variables["RKGRADE_TOKEN"], variables["RKGRADE_URL"]) == ("s3cret", "http://grader:8000")
    assert json.loads(variables["RKGRADE_LABEL"])["reward"] == "r_k:3"


def test_settings_that_there_are_none_of(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="SETTING is reasoning, python, terminal or repair, not tools"):
        started("train", Path("/bin/false"), tmp_path, SETTING="tools")


def test_prompts_are_made_of_rows_and_their_map(tmp_path: Path) -> None:
    rows, written = tmp_path / "rows.jsonl", tmp_path / "map.jsonl"
    rows.write_text("".join(json.dumps({"description": text}) + "\n" for text in ("Add.", "", "Double.", "Halve.")))
    ids = ["sha256:" + digit * 64 for digit in "abc"]
    written.write_text(
        "".join(
            json.dumps({"file": "data/rows.jsonl", "row": row, "problem_id": one}) + "\n"
            for row, one in zip((0, 1, 2), ids, strict=True)
        )
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "prompts.py"), str(rows), str(written), "--setting", "terminal"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "prompts: row 1: description: no text\n")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["label"], one["datasource"], one["prompt"][1]) for one in lines] == [
        (ids[0], "rows", {"role": "user", "content": "Add."}),
        (ids[2], "rows", {"role": "user", "content": "Double."}),
    ]
    told = lines[0]["prompt"][0]["content"]
    assert "the tool bash" in told
    assert "the tool submit" in told
    assert '{"name": "bash", "arguments": {"command": "..."}}' in told
