"""The paper in miniature (`examples/miniature`): its quick version, killed in its middle and begun again, learns."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np
import pytest
from safetensors.numpy import load_file

from rl_client.ensemble.report import Report
from rl_client.evaluate.report import Report as Evaluation
from rl_client.evaluate.statistics import Estimate
from rl_client.frontier.serving import argv_of
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


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("notes.txt", "{folder}/notes.txt: File exists\n"),
        ("notes.txt/run", "{folder}/notes.txt/run: Not a directory\n"),
        ("", "{folder}: holds what is no run's (notes.txt): say an empty folder, or a new one\n"),
    ],
)
def test_a_folder_that_cannot_be_a_runs_is_refused(tmp_path: Path, given: str, told: str) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    environment = os.environ | {"MINIATURE_PYTHON": sys.executable}
    command = [sys.executable, MINIATURE / "stages.py", tmp_path / given]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (1, told.format(folder=tmp_path))
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


def test_an_interpreter_that_is_not_there_is_told_before_anything_is_done(tmp_path: Path) -> None:
    environment = os.environ | {"MINIATURE_PYTHON": str(tmp_path / "python")}
    command = [sys.executable, MINIATURE / "stages.py", tmp_path / "run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, "MINIATURE_PYTHON names no interpreter" in done.stderr) == (2, True)
    assert not (tmp_path / "run").exists()


GRADER_ENDS = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import stages

folder = Path(sys.argv[2])
made, log = stages.Stages(folder, os.open("/dev/null", os.O_RDONLY)), folder / "grader.log"
with made.started(["sh", "-c", "sleep 1; echo its last words"], log) as grader, made.needing(grader, log):
    try:
        made.run("it", "sleep", "60")
    except stages.Failed as error:
        print(error)
"""


def test_a_stage_does_not_wait_for_a_grader_that_has_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GRADER_ENDS, MINIATURE, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert done.stdout == "it\ngrader has ended:\nits last words\n\n"
    assert [*(tmp_path / "done").iterdir()] == []


def test_a_server_is_started_wherever_the_checkout_and_the_interpreter_are() -> None:
    stages = loaded("stages")
    ends_with_it = ["setpriv", "--pdeathsig", "TERM"]
    expected = [*ends_with_it, "/my {venv}/python", str(MINIATURE / "serve.py"), "merged/alpha=1", "8001"]
    assert argv_of(stages.serving("/my {venv}/python"), Path("merged/alpha=1"), 8001) == expected


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.3, "shown"), (-0.3, -0.1, "contradicted"), (-0.1, 0.3, "not shown"), (0.0, 0.3, "not shown"),
     (None, None, "cannot be told")],
)  # fmt: skip
def test_a_claim_is_shown_where_its_interval_is_on_its_side_of_0(
    low: float | None, high: float | None, verdict: str
) -> None:
    report = loaded("report")
    found = report.verdict(Estimate(0.1, low, high, 50))
    assert found == verdict
    # Of two parts it is the worse that counts.
    assert report.both(found, "shown") == report.both("shown", found) == verdict


def test_training_goes_on_from_the_last_checkpoint_that_is_whole(tmp_path: Path) -> None:
    for step, state in ((90, "{}"), (100, "{}"), (110, '{"epoch": 0.'), (120, None)):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if state is not None:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(state)
    assert loaded("checkpoints").last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-100")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A checkout with nothing but what `run` itself reads."""
    for name in ("examples/miniature/run", "scripts/lib.sh"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_help_installs_nothing(bare: Path) -> None:
    command = [bare / "examples" / "miniature" / "run", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (0, "")
    assert "`run [--quick] [FOLDER]`" in done.stdout
    assert not (bare / ".venv").exists()


def test_a_venv_whose_making_was_ended_is_made_anew(bare: Path) -> None:
    # What a checkout has where its own packages are installed: nothing but a program in the place of its interpreter.
    (bare / "requirements").mkdir()
    for name in ("requirements/dev.txt", "pyproject.toml", "examples/miniature/requirements.txt"):
        (bare / name).write_text("")
    python = bare / ".venv" / "bin" / "python"
    half = bare / ".venv" / "miniature" / "bin" / "python"
    for program, text in ((python, '#!/bin/sh\n"$MINIATURE_PYTHON" -m pip --version\n'), (half, "#!/bin/sh\nexit 1\n")):
        program.parent.mkdir(parents=True)
        program.write_text(text)
        program.chmod(0o755)
    (bare / ".venv" / ".stamp-dev").write_text(f"{hashlib.sha256(b'').hexdigest()}  -\n")
    environment = {name: value for name, value in os.environ.items() if name != "MINIATURE_PYTHON"}
    command = [bare / "examples" / "miniature" / "run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert (done.returncode, done.stdout.split(" ")[0]) == (0, "pip"), done.stderr


def loaded(name: str) -> ModuleType:
    """A module of the example, which is no package."""
    spec = importlib.util.spec_from_file_location(name, MINIATURE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        told = (folder / "report.md").read_text().splitlines()
        assert len([line for line in told if "| **" in line]) == 7
        # Nobody takes it for the whole one.
        assert told[2].startswith("It is a `--quick` run")
        first, last = np.array(rewards_of(folder, "r_inf")).reshape(2, GRPO_STEPS // 2).mean(axis=1)
        assert f"| r_inf | {first:.3f} | {last:.3f} |" in told
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
        steps = steps_of(folder, name)
        assert [step["step"] for step in steps] == [*range(1, GRPO_STEPS + 1)]
        assert sum(rewards_of(folder, name)) / GRPO_STEPS > 0.1, name
    # Two problems in three ask for the speed that half of the programs of SFT have.
    assert min(step["frac_reward_zero_std"] for step in steps) < 1


def steps_of(folder: Path, name: str) -> list[dict[str, float]]:
    """What was logged of each."""
    state = json.loads((folder / f"{name}.training" / "trainer_state.json").read_text())
    return [step for step in state["log_history"] if "reward" in step]


def rewards_of(folder: Path, name: str) -> list[float]:
    return [step["reward"] for step in steps_of(folder, name)]


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
