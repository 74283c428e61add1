"""`rkgrade merge` and `rkgrade merge verify` as they are typed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from rl_client.cli import build
from tests.rl_client.merge.checkpoints import CONFIG, as_bytes, read, tensors, write
from tests.rl_client.merge.test_adapters import BASE, adapter


def rkgrade(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(build(), ["merge", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def low(tmp_path: Path) -> Path:
    return write(tmp_path / "low", tensors(1))


@pytest.fixture
def high(tmp_path: Path) -> Path:
    return write(tmp_path / "high", tensors(2))


def test_a_folder_for_each_alpha(tmp_path: Path, low: Path, high: Path) -> None:
    out = tmp_path / "out"
    done = rkgrade(low, high, "--alpha", "-0.5", "--alphas", "0:1:0.5", "--out", out)
    assert (done.exit_code, done.stderr) == (0, "")
    folders = [out / f"alpha={alpha}" for alpha in ("-0.5", "0", "0.5", "1")]
    assert sorted(out.iterdir()) == folders
    assert done.stdout.splitlines() == [f"{one}: 5 tensors, 0 of them the same in all" for one in folders]
    assert as_bytes(read(out / "alpha=1")) == as_bytes(tensors(2))
    again = rkgrade("average", low, high, "--alphas", "0:1:0.5", "--alpha", "-0.5", "--out", out)
    assert again.exit_code == 0

    checked = rkgrade("verify", *folders, "--tensors", 3)
    assert checked.exit_code == 0
    expected = [f"{one}: 2 files as written; 3 tensors computed again" for one in folders]
    assert checked.stdout.splitlines() == expected


def test_more_checkpoints_by_weights(tmp_path: Path, low: Path, high: Path) -> None:
    done = rkgrade(low, high, low, "--weights", "0.5,0.25,0.25", "--out", tmp_path / "out")
    assert (done.exit_code, done.stderr) == (0, "")
    assert (tmp_path / "out/weights=0.5,0.25,0.25/model.safetensors").is_file()


def test_adapters_become_one_or_are_applied_to_a_base(tmp_path: Path, low: Path) -> None:
    base = write(tmp_path / "base", tensors(3, np.float32, **BASE))
    adapters = [adapter(tmp_path / str(seed), seed, "layers.0.q") for seed in (1, 2)]
    done = rkgrade(*adapters, "--alpha", "1.5", "--out", tmp_path / "one")
    assert (done.exit_code, done.stderr) == (0, "")
    assert (tmp_path / "one/alpha=1.5/adapter_model.safetensors").is_file()
    done = rkgrade(*adapters, "--base", base, "--alpha", "1.5", "--out", tmp_path / "applied")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path}/applied/alpha=1.5: 4 tensors, 3 of them the same in all\n"
    assert rkgrade("verify", tmp_path / "one/alpha=1.5", tmp_path / "applied/alpha=1.5").exit_code == 0
    done = rkgrade(adapters[0], "--base", base, "--weights", "0.5", "--out", tmp_path / "half")
    assert (done.exit_code, done.stderr) == (0, "")

    done = rkgrade(low, adapters[0], "--alpha", "1.5", "--out", tmp_path / "mixed")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is a LoRA adapter, and not all are; give its base as --base" in done.stderr
    done = rkgrade(low, low, "--base", base, "--alpha", "1.5", "--out", tmp_path / "mixed")
    assert "--base: is for LoRA adapters" in done.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "say what to make: --alpha, --alphas or --weights"),
        (["--alpha", "nan"], "alpha must be a finite number"),
        (["--alphas", "1:0:1"], "a range of alphas needs FIRST <= LAST"),
        (["--weights", "1,1"], "weights must add up to 1"),
        (["--weights", "1"], "1 weights for 2 checkpoints"),
    ],
)
def test_what_cannot_be_made_is_told(tmp_path: Path, low: Path, high: Path, options: list[str], reason: str) -> None:
    done = rkgrade(low, high, *options, "--out", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rkgrade: {reason}")
    assert not (tmp_path / "out").exists()


def test_an_alpha_is_for_two(tmp_path: Path, low: Path, high: Path) -> None:
    assert "not for 3: say --weights" in rkgrade(low, high, low, "--alpha", 1, "--out", tmp_path).stderr
    assert "two checkpoints at least" in rkgrade(low, "--alpha", 1, "--out", tmp_path).stderr


def test_all_differences_are_told_and_nothing_is_written(tmp_path: Path, low: Path) -> None:
    other = write(tmp_path / "other", tensors(2, np.float16), CONFIG | {"hidden_size": 9, "eos_token_id": 7})
    done = rkgrade(low, other, "--alpha", 0.5, "--out", tmp_path / "out", "--allow", "eos_token_id")
    assert done.exit_code == 2
    lines = done.stderr.splitlines()
    assert lines[0] == "rkgrade: the checkpoints cannot be averaged, for 6 reasons:"
    assert lines[1] == f"  config.json: hidden_size: 8 in {low}, 9 in {other}"
    assert lines[2] == f"  tensor embed: BF16 in {low}, F16 in {other}"
    assert not (tmp_path / "out").exists()


def test_weights_that_are_no_numbers(tmp_path: Path, low: Path) -> None:
    held = tensors(2)
    held["norm"][2] = np.nan
    bad = write(tmp_path / "bad", held)
    done = rkgrade(low, bad, "--alpha", 0.5, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert f"{bad}: tensor norm holds 1 NaN elements" in done.stderr
    done = rkgrade(low, bad, "--alpha", 0.5, "--out", tmp_path / "counted", "--allow-not-finite")
    assert done.exit_code == 1
    assert done.stdout.endswith("in all; 1 NaN, 0 infinite, 0 of these by overflow\n")


def test_a_folder_that_is_taken(tmp_path: Path, low: Path, high: Path) -> None:
    (tmp_path / "out/alpha=0.5").mkdir(parents=True)
    done = rkgrade(low, high, "--alpha", 0.5, "--out", tmp_path / "out")
    assert done.exit_code == 3
    assert "alpha=0.5: is there already, and is no merge" in done.stderr


def test_verify_tells_what_is_wrong(tmp_path: Path, low: Path, high: Path) -> None:
    rkgrade(low, high, "--alphas", "0:1:1", "--out", tmp_path / "out")
    path = tmp_path / "out/alpha=0/model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    done = rkgrade("verify", path.parent, tmp_path / "out/alpha=1", low)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{path}: is cut short")
    assert lines[1] == f"{tmp_path}/out/alpha=1: 2 files as written; 5 tensors computed again"
    assert lines[2].startswith(f"{low}/merge.json: No such file")


def test_without_the_extra_it_is_named() -> None:
    code = "import sys; sys.modules['ml_dtypes'] = None; from rl_client.cli import main; main()"
    for arguments in (["a", "b", "--alpha", "1", "--out", "x"], ["verify", "x"]):
        done = subprocess.run([sys.executable, "-c", code, "merge", *arguments], capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith("rkgrade: merging is not installed here: ")
        assert done.stderr.endswith("/bin/python -m pip install 'rkgrade[merge]'\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_nothing_looks_whole(tmp_path: Path, number: signal.Signals, status: int) -> None:
    """A real signal, sent when some of a file was written."""
    big = {"norm": (8,), "rest": (2**22,)}
    folders = [write(tmp_path / name, tensors(seed, **big)) for seed, name in ((1, "low"), (2, "high"))]
    code = """
import os, signal, sys
from rl_client.merge.output import Shard
write, count, number = Shard.write, 0, int(sys.argv.pop())
def counted(self, content):
    global count
    write(self, content)
    count += 1
    if count == 3:
        os.kill(os.getpid(), number)
Shard.write = counted
from rl_client.cli import main
main()
"""
    arguments = ["merge", *folders, "--alpha", "0.5", "--out", tmp_path / "out", str(int(number))]
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert (done.returncode, done.stdout) == (status, "")
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["alpha=0.5.partial"]
    assert [one.name for one in (tmp_path / "out/alpha=0.5.partial").iterdir()] == ["journal.jsonl"]
