"""Averaging two checkpoints shaped like Qwen2.5-0.5B (988 MB of bf16, 290 tensors in 4 files): time and peak memory.

    python bench/merge.py [--quick] [--json FILE]

The floor is what the same bytes cost without any arithmetic or hash: `cat` of both checkpoints, `cp` of one, `sync` of
what was copied. All files are in the page cache. `--quick` takes 4 of the 24 layers and a tenth of the words. It needs
13 GB in a temporary directory.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
from measure import Report, options
from safetensors.numpy import save_file

MB = 10**6
HIDDEN, INTERMEDIATE, KEYS, FILES = 896, 4864, 128, 4
NINE = "-0.5:1.5:0.25"

#: The goals: at most 1.3 times the floor, nine alphas at most 5.5 times one, 150 MB.
MOST_OF_FLOOR = 1.3
MOST_OF_ONE = 5.5
MOST_PEAK_MB = 150.0

#: CPU seconds and the peak of this process alone: getrusage would count the memory of what it was forked from.
_MERGE = """
import atexit, os, pathlib, sys
def tell():
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in status if line.startswith("VmHWM"))
    used = os.times()
    print(used.user + used.system, peak, file=sys.stderr)
atexit.register(tell)
from rl_client.cli import main
main()
"""


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
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2", "tie_word_embeddings": True}))
    return total


@dataclass(frozen=True, slots=True)
class Run:
    """What one side took."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def floor(low: Path, high: Path, out: Path) -> Run:
    script = 'cat "$1"/* "$2"/* >/dev/null && cp -r "$1" "$3" && sync "$3"/* "$3"'
    start = time.perf_counter()
    subprocess.run(["sh", "-c", script, "sh", low, high, out], check=True)
    took = time.perf_counter() - start
    shutil.rmtree(out)
    return Run(took, 0, 0)


def merge(low: Path, high: Path, out: Path, *options: str) -> Run:
    command = [sys.executable, "-c", _MERGE, "merge", str(low), str(high), *options, "--out", str(out)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    took = time.perf_counter() - start
    shutil.rmtree(out)
    cpu_s, peak_kib = done.stderr.splitlines()[-1].split()
    return Run(took, float(cpu_s), int(peak_kib) * 1024 / MB)


def main() -> None:
    chosen = options(__doc__)
    report = Report("merge", chosen.quick)
    layers, words = (4, 15_000) if chosen.quick else (24, 151_936)
    found: dict[str, list[Run]] = {"floor": [], "one alpha": [], "nine alphas": []}
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as name:
        low, high, out = (Path(name) / one for one in ("low", "high", "out"))
        size = make(low, 1, layers, words)
        make(high, 2, layers, words)
        # The first round is not counted: it brings everything into the page cache.
        for number in range(2 if chosen.quick else 6):
            sides = {
                "floor": floor(low, high, out),
                "one alpha": merge(low, high, out, "--alpha", "1.5"),
                "nine alphas": merge(low, high, out, "--alphas", NINE),
            }
            for side, run in sides.items():
                if number > 0:
                    found[side].append(run)
    walls = {side: statistics.median(run.wall_s for run in runs) for side, runs in found.items()}
    peak_mb = max(run.peak_mb for runs in found.values() for run in runs)
    report.table(
        f"Two checkpoints of {size / MB:.0f} MB",
        ("side", "wall s", "CPU s", "GB read and written a s", "peak MB"),
        [
            [
                side,
                walls[side],
                statistics.median(run.cpu_s for run in runs) or None,
                size * (11 if side == "nine alphas" else 3) / walls[side] / 1e9,
                max(run.peak_mb for run in runs) or None,
            ]
            for side, runs in found.items()
        ],
    )
    paired = zip(found["floor"], found["one alpha"], found["nine alphas"], strict=True)
    ratios = [(one.wall_s / least.wall_s, nine.wall_s / one.wall_s) for least, one, nine in paired]
    report.goal("one alpha, of the floor", statistics.median(first for first, _ in ratios), MOST_OF_FLOOR)
    report.goal("nine alphas, of one", statistics.median(second for _, second in ratios), MOST_OF_ONE)
    report.goal("peak resident memory", peak_mb, MOST_PEAK_MB, " MB")
    report.emit(chosen.json)


if __name__ == "__main__":
    main()
