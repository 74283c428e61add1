"""What tests of merging share: small checkpoints, plans of them, and what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from rl_client.merge.opening import opened
from rl_client.merge.output import Output
from rl_client.merge.recipes import of_alpha
from rl_client.merge.run import Watcher, merge

Tensors: TypeAlias = Mapping[str, NDArray[Any]]

CONFIG: dict[str, Any] = {"model_type": "qwen2", "hidden_size": 8, "vocab_size": 11, "tie_word_embeddings": False}
BF16 = ml_dtypes.bfloat16


def tensors(seed: int, dtype: Any = BF16, **shapes: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    """Of a tiny transformer, unless shapes are given."""
    random = np.random.default_rng(seed)
    wanted = shapes or {"embed": (11, 8), "q.weight": (8, 8), "q.bias": (8,), "norm": (8,), "scalar": ()}
    return {name: np.asarray(random.normal(size=shape)).astype(dtype) for name, shape in wanted.items()}


def write(
    path: Path, files: Tensors | Sequence[Tensors], config: Mapping[str, Any] = CONFIG, **texts: str | bytes
) -> Path:
    """A checkpoint of one file, or of several with their index; `texts` by name, `__` for a dot."""
    path.mkdir(parents=True)
    if isinstance(files, Mapping):
        save_file(dict(files), path / "model.safetensors", {"format": "pt"})
    else:
        names = [f"model-{number:05}-of-{len(files):05}.safetensors" for number in range(1, len(files) + 1)]
        for name, held in zip(names, files, strict=True):
            save_file(dict(held), path / name, {"format": "pt"})
        mapped = {tensor: name for name, held in zip(names, files, strict=True) for tensor in held}
        write_index(path, mapped)
    (path / "config.json").write_text(json.dumps(config))
    for name, text in texts.items():
        (path / name.replace("__", ".")).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def write_index(path: Path, mapped: Mapping[str, str]) -> None:
    index = {"metadata": {"total_size": 0}, "weight_map": mapped}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))


def read(path: Path) -> dict[str, NDArray[Any]]:
    """All tensors, by the library of the format."""
    return {name: held for file in sorted(path.glob("*.safetensors")) for name, held in load_file(file).items()}


def as_bytes(held: Tensors) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (str(one.dtype), one.shape, one.tobytes()) for name, one in held.items()}


class Silent:
    """A watcher that keeps the sums."""

    def __init__(self) -> None:
        self.total = self.done = 0

    def planned(self, total_bytes: int) -> None:
        self.total = total_bytes

    def advanced(self, done_bytes: int) -> None:
        self.done += done_bytes


def average(
    out: Path, paths: Sequence[Path], *alphas: float, watcher: Watcher | None = None, **more: Any
) -> list[Output]:
    with opened(paths, None, [of_alpha(one) for one in alphas], out, **more) as made:
        return merge(made, watcher or Silent())
