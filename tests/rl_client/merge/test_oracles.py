"""Merges against those of mergekit and PEFT, of checkpoints and adapters that transformers and PEFT wrote.

In types of 16 bits the products with these alphas but 0.3 are exact in fp32: there is one way to round, and every bit
is the same. Elsewhere mergekit's kernel, where the CPU has an instruction for it, adds a product before that is
rounded, and we round it, as `a * h + (1 - a) * l` in fp32 says; so there the sums are within each other's rounding.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from typer.testing import CliRunner

from rl_client.cli import build
from tests.rl_client.trainers.trl_python import trl_python

Told: TypeAlias = dict[str, dict[str, Any]]
ALIKE = {"computes": True, "only one has": [], "differ": 0, "far": 0}


def run_oracles(what: str, folder: Path) -> str:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf"), "OMP_NUM_THREADS": "1"}
    command = [str(trl_python()), str(Path(__file__).with_name("oracles.py")), what, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def merge(*arguments: str | Path) -> None:
    done = CliRunner().invoke(build(), ["merge", *map(str, arguments)])
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What `oracles.py` says of merges, by what was merged."""
    folder = tmp_path_factory.mktemp("oracles")
    run_oracles("make", folder)
    for name in ("tied", "untied", "half"):
        low, high, third = (folder / name / side for side in ("low", "high", "third"))
        merge(low, high, "--alphas", "-0.5:1.5:0.5", "--alpha", "0.3", "--out", folder / name)
        merge(low, high, third, "--weights", "0.5,0.75,-0.25", "--out", folder / name)
    adapters = [folder / "adapters" / side for side in ("low", "high")]
    alphas = ["--alpha", "-0.5", "--alpha", "1.5"]
    merge(*adapters, *alphas, "--out", folder / "concatenated")
    for name in ("base", "base-bf16"):
        merge(*adapters, *alphas, "--base", folder / name, "--out", folder / "applied" / name)
    found: Told = json.loads(run_oracles("compare", folder))
    return found


@pytest.mark.trainer
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["tied bf16 in files", "half fp16 in files and in one", "untied fp32"])
def test_it_loads_and_is_mergekits_linear_merge(told: Told, name: str) -> None:
    kind = name.split()[0]
    found = {merge.split()[1]: dict(one) for merge, one in told.items() if merge.split()[0] == kind}
    for inexact in ("0.3", "1.5", "weights") if kind == "untied" else ("0.3",):
        # Of 100,000 elements; where rounding to 16 bits follows, it hides nearly all of it.
        assert found[inexact]["differ"] < (50_000 if kind == "untied" else 100)
        found[inexact]["differ"] = 0
    assert found == dict.fromkeys(("-0.5", "0", "0.3", "0.5", "1", "1.5", "weights"), ALIKE)


@pytest.mark.trainer
@pytest.mark.timeout(900)
def test_adapters_add_what_peft_adds(told: Told) -> None:
    """Bit by bit: the numbers are such that all sums are exact."""
    for alpha in ("-0.5", "1.5"):
        changed = told[f"adapters {alpha}"]["changed"]
        assert changed > 10_000
        assert told[f"adapters {alpha}"] == {"applied": 0, "applied to bf16": 0, "concatenated": 0, "changed": changed}
