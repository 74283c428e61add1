"""Averaging two checkpoints shaped like Qwen2.5-0.5B (988 MB of bf16, 290 tensors in 4 files): time and peak memory.

    python bench/merge.py [--quick] [--json FILE]

The floor is what the same bytes cost without any arithmetic or hash: `cat` of both checkpoints, `cp` of one, `sync` of
what was copied. Beside it stands the sha256 of these bytes on one core. All files are in the page cache. mergekit's
linear merge takes its turn where .venv/trl has it, as the tests marked `trainer` in tests/rl_client/merge put it there;
with one thread, with which it is fastest.

Nine alphas at once are made of smaller checkpoints, so that no more than 5 GB are taken, in a temporary directory. What
it takes to start, measured on checkpoints of a few kilobytes, is taken off both sides of their ratio.
`--quick` takes a seventh of both.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import ml_dtypes
import numpy as np
from measure import Cell, Report, options
from safetensors.numpy import save_file

MB = 10**6
DISK_MB = 5_000
#: Layers and words of the checkpoints that one alpha is made of, and of those for nine.
ONE, OF_NINE = (24, 151_936), (10, 64_000)
QUICK_ONE, QUICK_OF_NINE = (4, 15_000), (2, 8_000)
HIDDEN, INTERMEDIATE, KEYS, FILES = 896, 4864, 128, 4
NINE = "-0.5:1.5:0.25"

#: The goals: at most 1.3 times the floor, a fifth of mergekit, nine alphas at most 5.5 times one, 150 MB.
MOST_OF_FLOOR = 1.3
MOST_OF_MERGEKIT = 0.2
MOST_OF_ONE = 5.5
MOST_PEAK_MB = 150.0

#: CPU seconds and the peak of this process alone: getrusage would count the memory of what it was forked from.
_TELLING = """
import atexit, os, pathlib, sys
def tell():
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in status if line.startswith("VmHWM"))
    used = os.times()
    print(used.user + used.system, peak, file=sys.stderr)
atexit.register(tell)
from {module} import main
main()
"""
MERGEKIT = Path(__file__).parents[1] / ".venv" / "trl" / "bin" / "python"


def shapes(layers: int, words: int) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (words, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for number in range(layers):
        layer = {
            "self_attn.q_proj.weight": (HIDDEN, HIDDEN),
            "self_attn.q_proj.bias": (HIDDEN,),
            "self_attn.k_proj.weight": (KEYS, HIDDEN),
            "self_attn.k_proj.bias": (KEYS,),
            "self_attn.v_proj.weight": (KEYS, HIDDEN),
            "self_attn.v_proj.bias": (KEYS,),
            "self_attn.o_proj.weight": (HIDDEN, HIDDEN),
            "mlp.gate_proj.weight": (INTERMEDIATE, HIDDEN),
            "mlp.up_proj.weight": (INTERMEDIATE, HIDDEN),
            "mlp.down_proj.weight": (HIDDEN, INTERMEDIATE),
            "input_layernorm.weight": (HIDDEN,),
            "post_attention_layernorm.weight": (HIDDEN,),
        }
        found |= {f"model.layers.{number}.{name}": shape for name, shape in layer.items()}
    return found


def make(folder: Path, seed: int, layers: int, words: int) -> int:
    """The bytes of its tensors."""
    random = np.random.default_rng(seed)
    wanted = list(shapes(layers, words).items())
    folder.mkdir()
    mapped: dict[str, str] = {}
    total = 0
    for number in range(FILES):
        name = f"model-{number + 1:05}-of-{FILES:05}.safetensors"
        held = {
            key: (random.standard_normal(shape, np.float32) * np.float32(0.02)).astype(ml_dtypes.bfloat16)
            for key, shape in wanted[number::FILES]
        }
        save_file(held, folder / name, {"format": "pt"})
        mapped |= dict.fromkeys(held, name)
        total += sum(one.nbytes for one in held.values())
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": mapped}))
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "tie_word_embeddings": True,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "num_hidden_layers": layers,
        "vocab_size": words,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return total


@dataclass(frozen=True, slots=True)
class Run:
    """What one side took."""

    wall_s: float
    cpu_s: float
    peak_mb: float


Side: TypeAlias = Callable[[Path, Path, Path], Run]
"""Takes LOW and HIGH, and writes and removes the third."""


def floor(low: Path, high: Path, out: Path) -> Run:
    script = 'cat "$1"/* "$2"/* >/dev/null && cp -r "$1" "$3" && sync "$3"/* "$3"'
    start = time.perf_counter()
    subprocess.run(["sh", "-c", script, "sh", low, high, out], check=True)
    took = time.perf_counter() - start
    shutil.rmtree(out)
    return Run(took, 0, 0)


def sha256(low: Path, high: Path, out: Path) -> Run:
    """Of as many bytes as a merge reads and writes, on one core."""
    start = time.perf_counter(), time.process_time()
    for path in (*low.iterdir(), *low.iterdir(), *high.iterdir()):
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha256")
    return Run(time.perf_counter() - start[0], time.process_time() - start[1], 0)


def merge(what: str, value: str, low: Path, high: Path, out: Path) -> Run:
    command = [sys.executable, "-c", _TELLING.format(module="rl_client.cli"), "merge"]
    return _telling([*command, str(low), str(high), what, value, "--out", str(out)], out)


def mergekit(low: Path, high: Path, out: Path) -> Run:
    listed = [{"model": str(path), "parameters": {"weight": weight}} for path, weight in ((low, -0.5), (high, 1.5))]
    config = {"merge_method": "linear", "models": listed, "dtype": "bfloat16"}
    # JSON is YAML.
    path = low.parent / "mergekit.yml"
    path.write_text(json.dumps(config))
    command = [str(MERGEKIT), "-c", _TELLING.format(module="mergekit.scripts.run_yaml"), str(path), str(out)]
    return _telling([*command, "--quiet", "--no-copy-tokenizer"], out, OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")


def _telling(command: list[str], out: Path, **environment: str) -> Run:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    took = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    shutil.rmtree(out)
    cpu_s, peak_kib = done.stderr.splitlines()[-1].split()
    return Run(took, float(cpu_s), int(peak_kib) * 1024 / MB)


@dataclass(frozen=True, slots=True)
class Table:
    """Runs of sides that took turns, on checkpoints of this size."""

    size: int
    runs: dict[str, list[Run]]

    def rows(self, outputs: Mapping[str, int]) -> list[list[Cell]]:
        """`outputs`: how many checkpoints a side writes, where it is not one."""
        return [
            [
                side,
                self.wall_s(side),
                statistics.median(run.cpu_s for run in runs) or None,
                self.size * (2 + outputs.get(side, 1)) / self.wall_s(side) / 1e9,
                max(run.peak_mb for run in runs) or None,
            ]
            for side, runs in self.runs.items()
        ]

    def wall_s(self, side: str) -> float:
        return statistics.median(run.wall_s for run in self.runs[side])

    def ratio(self, side: str, other: str, less_s: float = 0) -> float:
        """The median of the rounds' own; `less_s` is taken off both."""
        pairs = zip(self.runs[side], self.runs[other], strict=True)
        return statistics.median((one.wall_s - less_s) / (two.wall_s - less_s) for one, two in pairs)


def measured(folder: Path, shape: tuple[int, int], rounds: int, sides: Mapping[str, Side]) -> Table:
    """Makes checkpoints of so many layers and words, and removes them."""
    low, high, out = (folder / one for one in ("low", "high", "out"))
    size = make(low, 1, *shape)
    make(high, 2, *shape)
    runs: dict[str, list[Run]] = {side: [] for side in sides}
    # The first round is not counted: it brings everything into the page cache.
    for number in range(rounds + 1):
        for side, run in sides.items():
            took = run(low, high, out)
            if number > 0:
                runs[side].append(took)
    shutil.rmtree(low)
    shutil.rmtree(high)
    return Table(size, runs)


def main() -> None:
    chosen = options(__doc__)
    report = Report("merge", chosen.quick)
    rounds = 1 if chosen.quick else 5
    one_alpha = partial(merge, "--alpha", "1.5")
    sides: dict[str, Side] = {"floor": floor, "sha256 of these bytes": sha256, "rkgrade, one alpha": one_alpha}
    if (MERGEKIT.parent / "mergekit-yaml").exists():
        sides["mergekit"] = mergekit
    else:
        print(
            f"no mergekit in {MERGEKIT.parents[1]}: pytest -m trainer tests/rl_client/merge installs it",
            file=sys.stderr,
        )
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as name:
        folder = Path(name)
        if shutil.disk_usage(folder).free < DISK_MB * MB:
            sys.exit(f"{folder}: {DISK_MB / 1000:.0f} GB are needed there")
        start = measured(folder, (0, 8), rounds, {"start": one_alpha})
        one = measured(folder, QUICK_ONE if chosen.quick else ONE, rounds, sides)
        both = {"one alpha": one_alpha, "nine alphas": partial(merge, "--alphas", NINE)}
        nine = measured(folder, QUICK_OF_NINE if chosen.quick else OF_NINE, rounds, both)
    columns = ("side", "wall s", "CPU s", "GB read and written a s", "peak MB")
    report.table(f"Two checkpoints of {one.size / MB:.0f} MB", columns, one.rows({}))
    report.table(f"Two checkpoints of {nine.size / MB:.0f} MB", columns, nine.rows({"nine alphas": 9}))
    report.table(f"Two checkpoints of {start.size / MB:.2f} MB", columns, start.rows({}))
    report.goal("one alpha, of the floor", one.ratio("rkgrade, one alpha", "floor"), MOST_OF_FLOOR)
    if "mergekit" in sides:
        report.goal("one alpha, of mergekit", one.ratio("rkgrade, one alpha", "mergekit"), MOST_OF_MERGEKIT)
    ratio = nine.ratio("nine alphas", "one alpha", start.wall_s("start"))
    report.goal("nine alphas, of one, both less the start", ratio, MOST_OF_ONE)
    ours = [*one.runs["rkgrade, one alpha"], *(run for runs in nine.runs.values() for run in runs)]
    report.goal("peak resident memory", max(run.peak_mb for run in ours), MOST_PEAK_MB, " MB")
    report.emit(chosen.json)


if __name__ == "__main__":
    main()
