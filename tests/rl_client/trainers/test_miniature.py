"""The paper in miniature (`examples/miniature`): its quick version, killed in its middle and begun again, learns."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from safetensors.numpy import load_file

from rl_client.ensemble.report import Report
from rl_client.evaluate.report import Report as Evaluation
from tests.rl_client.trainers.trl_python import trl_python
from tests.rl_client.trainers.venvs import ROOT
from tests.serving import poll

MINIATURE = ROOT / "examples" / "miniature"

#: Of the quick version, under each reward.
GRPO_STEPS = 4


def test_problems_are_of_one_part_and_their_programs_agree(tmp_path: Path) -> None:
    sizes = ("--examples", "50", "--training", "200", "--held-out", "50")
    # All shapes there are; it raises where a fast program does not print what the slow one does.
    subprocess.run([sys.executable, MINIATURE / "prepare.py", tmp_path, *sizes], check=True)
    shapes = {
        name: {json.loads(line)["key"].rstrip("-0123456789") for line in (tmp_path / name).read_text().splitlines()}
        for name in ("training.jsonl", "held-out.jsonl")
    }
    assert (len(shapes["training.jsonl"]), len(shapes["held-out.jsonl"])) == (200, 50)
    # What is held out are conditions on pairs with a question.
    pairs = [{re.sub("-(all|even|odd|above|below)-", " ", one) for one in part} for part in shapes.values()]
    assert not pairs[0] & pairs[1]


STARTED = """
import os, signal, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import stages

class Popen(subprocess.Popen):
    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        made.append(self)
        signal.raise_signal(signal.SIGTERM)

made, subprocess.Popen = [], Popen
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
try:
    stages.Stages(Path(sys.argv[2]), os.open("/dev/null", os.O_RDONLY)).run("it", "sleep", "60")
finally:
    print(made[0].returncode)
"""


def test_a_signal_that_comes_as_a_stage_begins_leaves_nothing_running(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTED, MINIATURE, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, f"it\n{-signal.SIGTERM}\n")


def test_a_stage_ends_with_what_has_begun_it_even_where_that_is_killed(tmp_path: Path) -> None:
    code = STARTED.split("class Popen")[0] + (
        'stages.Stages(Path(sys.argv[2]), os.open("/dev/null", os.O_RDONLY)).run('
        '"it", "sh", "-c", "echo $$ > pid; exec sleep 60")'
    )
    with subprocess.Popen([sys.executable, "-c", code, MINIATURE, tmp_path], stdout=subprocess.DEVNULL) as killed:
        pid = tmp_path / "pid"
        poll(lambda: pid.exists() and pid.read_text().endswith("\n"), 20, "it has begun")
        killed.kill()
    poll(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists(), 20, "it has ended")


def test_who_holds_the_lock_is_told(tmp_path: Path) -> None:
    lock, other = (os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR) for _ in range(2))
    # One has been handed the lock, and one has but opened the file.
    with (
        subprocess.Popen(["sleep", "60"], stdin=lock) as left,
        subprocess.Popen(["sleep", "61"], stdin=other) as bystander,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.close(lock)
        command = [sys.executable, MINIATURE / "stages.py", tmp_path]
        environment = os.environ | {"MINIATURE_PYTHON": sys.executable}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=50)
        left.kill()
        bystander.kill()
    os.close(other)
    told = f"{tmp_path}: another run works there, or what a killed one has left:\n{left.pid} sleep 60\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_a_quick_run_does_not_pass_for_a_whole_one(tmp_path: Path) -> None:
    (tmp_path / "size").write_text("quick")
    environment = os.environ | {"MINIATURE_PYTHON": sys.executable}
    command = [sys.executable, MINIATURE / "stages.py", tmp_path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=50)
    told = f"{tmp_path}: holds a quick run: say another folder for a whole one\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_easy_problems_that_are_held_out_are_not_shown(tmp_path: Path) -> None:
    sizes = ("--examples", "2000", "--training", "16", "--held-out", "9")
    subprocess.run([sys.executable, MINIATURE / "prepare.py", tmp_path, "--easy", *sizes], check=True)
    shown, training, held_out = (
        {json.loads(line)[name] for line in (tmp_path / file).read_text().splitlines()}
        for file, name in (("sft.jsonl", "prompt"), ("training.jsonl", "statement"), ("held-out.jsonl", "statement"))
    )
    assert (len(training), len(held_out)) == (16, 9)
    assert not held_out & (shown | training)


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(1800)
def test_all_stages_end_to_end() -> None:
    environment = os.environ | {"MINIATURE_PYTHON": str(trl_python())}
    # Not below pytest's, which is closed to the users of cells.
    with TemporaryDirectory(prefix="rkgrade-tests-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        command = [sys.executable, MINIATURE / "stages.py", "--quick", folder]

        with subprocess.Popen(command, env=environment) as killed:
            poll(lambda: killed.poll() is not None or kept_steps(folder), 600, "a step under R_2 is kept")
            killed.kill()
        poll(lambda: is_free(folder / "lock"), 60, "nothing of it is left")
        kept = kept_steps(folder)
        first = (folder / "done" / "sft").stat().st_mtime_ns
        assert not (folder / "done" / "r_2").exists()

        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, done.stderr
        assert is_free(folder / "lock")
        # What was done is not done again.
        assert (folder / "done" / "sft").stat().st_mtime_ns == first
        assert (folder / "r_2.log").read_text().count("'reward':") == GRPO_STEPS - kept

        check_rewards(folder)
        check_averages(folder)
        check_answers(folder)
        ensemble = Report.model_validate_json((folder / "ensemble.json").read_bytes())
        assert [one.alpha for one in ensemble.members] == [-0.5, 0, 0.5, 1, 1.5]
        assert (ensemble.problems, ensemble.budget) == (9, 8)
        claims = [line for line in (folder / "report.md").read_text().splitlines() if "| **" in line]
        assert len(claims) == 7
        assert (folder / "line" / "frontier.html").exists()


def kept_steps(folder: Path) -> int:
    """Of training under R_2: those that it would go on after."""
    states = folder.glob("r_2.training/checkpoint-*/trainer_state.json")
    return max((int(state.parent.name.rpartition("-")[2]) for state in states), default=0)


def is_free(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def check_rewards(folder: Path) -> None:
    """The grader's rewards say something of what was sampled."""
    for name in ("r_2", "r_4", "r_inf"):
        state = json.loads((folder / f"{name}.training" / "trainer_state.json").read_text())
        steps = [step for step in state["log_history"] if "reward" in step]
        assert [step["step"] for step in steps] == [*range(1, GRPO_STEPS + 1)]
        assert sum(step["reward"] for step in steps) / GRPO_STEPS > 0.1, name
    # Two problems in three ask for the speed that half of the programs of SFT have.
    assert min(step["frac_reward_zero_std"] for step in steps) < 1


def check_averages(folder: Path) -> None:
    """Training has changed the weights by each reward otherwise, and averages are what the formula says."""
    low, high = (load_file(folder / name / "model.safetensors") for name in ("r_2", "r_inf"))
    assert max(np.abs(high[name] - low[name]).max() for name in low) > 1e-3
    for alpha in (-0.5, 0, 0.5, 1, 1.5):
        average = load_file(folder / "merged" / f"alpha={alpha:g}" / "model.safetensors")
        for name in low:
            expected = alpha * high[name] + (1 - alpha) * low[name]
            np.testing.assert_allclose(average[name], expected, rtol=1e-5, atol=1e-6, err_msg=f"{name} at {alpha}")


def check_answers(folder: Path) -> None:
    """The grader finds some right, and its rewards have changed them."""
    before, trained = (
        Evaluation.model_validate_json((folder / "line" / name / "report.json").read_bytes()).problems
        for name in ("sft", "alpha=1")
    )
    assert sum(one.samples for one in before) == 72
    assert sum(one.categories["correct"] for one in before) > 0.1 * 72
    # R_inf has taught speed.
    slow = [sum(one.categories["optimization_failure"] for one in problems) for problems in (before, trained)]
    assert slow[0] - slow[1] > 0.1 * 72
