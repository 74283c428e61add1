"""LoRA adapters in PEFT's form: what one adds to the weights of a base, scale * B A.

A and B are never averaged: (c_1 B_1 + c_2 B_2)(c_1 A_1 + c_2 A_2) is not c_1 B_1 A_1 + c_2 B_2 A_2. That sum is itself
an adapter, whose ranks are those of all together: B = [c_1 s_1 B_1, c_2 s_2 B_2], A = [A_1; A_2], with a scale of 1.

Form: https://huggingface.co/docs/peft/developer_guides/checkpoint. The scale is lora_alpha / r, of rsLoRA
lora_alpha / sqrt(r) (https://arxiv.org/abs/2312.03732).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_client.merge.arithmetic import FLOATS, Wide
from rl_client.merge.checkpoint import ADAPTER, ADAPTER_CONFIG, read_json, reading, refuse_pickles
from rl_client.merge.errors import BadCheckpoint, Differences, NotFinite
from rl_client.merge.headers import Tensor, read_head

PREFIX = "base_model.model."
_PAIR = re.compile(r"(?P<module>.+)\.lora_(?P<side>[AB])\.weight")
#: Ways to begin training that change the base, too: what such an adapter adds is not to be had from it alone.
_KEEPS_BASE = (True, False, None, "gaussian", "eva", "orthogonal")
#: What an adapter may not have, and the values that mean that it does not.
_PLAIN: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none", None),
    "use_dora": (False, None),
    "fan_in_fan_out": (False, None),
    "modules_to_save": (None, []),
    "trainable_token_indices": (None, [], {}),
    "target_parameters": (None, []),
    "lora_bias": (False, None),
    "layer_replication": (None, []),
    "alora_invocation_tokens": (None, []),
    "use_qalora": (False, None),
    "use_bdlora": (None, False),
    "arrow_config": (None,),
    "kasa_config": (None,),
    "lora_ga_config": (None,),
    "monteclora_config": (None,),
    "init_lora_weights": _KEEPS_BASE,
}


@dataclass(frozen=True, slots=True)
class Module:
    """What an adapter has for one linear layer."""

    a: Tensor
    """r x in."""
    b: Tensor
    """out x r."""
    scale: float

    @property
    def rank(self) -> int:
        return self.a.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Of the layer's weight."""
        return self.b.shape[0], self.a.shape[1]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A folder, as its config and the head of its file describe it."""

    path: Path
    config: Mapping[str, Any]
    modules: Mapping[str, Module]
    """By the name of the layer in the base."""

    @property
    def files(self) -> list[Path]:
        return [self.path / ADAPTER, self.path / ADAPTER_CONFIG]


def read_adapter(path: Path) -> Adapter:
    """Raises BadCheckpoint."""
    config = read_json(path / ADAPTER_CONFIG)
    for name, fits in _PLAIN.items():
        if config.get(name, fits[0]) not in fits:
            reason = f"{name}: {config[name]!r} is nothing that can be averaged exactly"
            raise BadCheckpoint(path / ADAPTER_CONFIG, reason)
    file = path / ADAPTER
    with reading(path):
        if not file.is_file():
            refuse_pickles(path)
            raise BadCheckpoint(path, f"has no {ADAPTER}")
    sides: dict[str, dict[str, Tensor]] = {}
    for tensor in read_head(file).tensors:
        matched = _PAIR.fullmatch(tensor.name.removeprefix(PREFIX))
        if matched is None or len(tensor.shape) != 2 or tensor.dtype not in FLOATS:
            raise BadCheckpoint(file, f"tensor {tensor.name}: is no A or B of a linear layer")
        sides.setdefault(matched["module"], {})[matched["side"]] = tensor
    return Adapter(path, config, {name: _module(path, config, name, pair) for name, pair in sorted(sides.items())})


def _module(path: Path, config: Mapping[str, Any], name: str, pair: Mapping[str, Tensor]) -> Module:
    if len(pair) != 2:
        raise BadCheckpoint(path / ADAPTER, f"{name}: has A or B, and not both")
    a, b = pair["A"], pair["B"]
    rank = a.shape[0]
    told = _of_pattern(path, config, "rank_pattern", name, "r")
    if rank != b.shape[1] or rank != told or rank == 0:
        reason = f"{name}: A is {a.shape}, B is {b.shape}, and {ADAPTER_CONFIG} tells of rank {told}"
        raise BadCheckpoint(path / ADAPTER, reason)
    alpha = _of_pattern(path, config, "alpha_pattern", name, "lora_alpha")
    # As whole numbers JSON has larger ones than there are floats.
    if not isinstance(alpha, int | float) or not abs(alpha) <= sys.float_info.max:
        raise BadCheckpoint(path / ADAPTER_CONFIG, f"lora_alpha: {str(alpha)[:40]!r} is no number that can be used")
    return Module(a, b, alpha / (math.sqrt(rank) if config.get("use_rslora") else rank))


def _of_pattern(path: Path, config: Mapping[str, Any], key: str, name: str, otherwise: str) -> Any:
    """As PEFT does: of the first pattern that the end of the layer's name matches."""
    patterns = config.get(key) or {}
    try:
        for pattern, value in patterns.items():
            if re.match(rf"(.*\.)?({pattern})$", name):
                return value
    except (AttributeError, re.error) as error:
        raise BadCheckpoint(path / ADAPTER_CONFIG, f"{key}: is no object of patterns: {error}") from None
    return config.get(otherwise)


def compare_adapters(adapters: Sequence[Adapter], base: Mapping[str, Tensor] | None, allowed: Collection[str]) -> None:
    """`base`: the tensors of what they are applied to. Raises Differences where they are not for it, or not for one."""
    first, *others = adapters
    found = []
    key = "base_model_name_or_path"
    for other in others:
        names = [one.config.get(key) for one in (first, other)]
        if base is None and names[0] != names[1] and key not in allowed:
            found.append(f"{key}: {names[0]!r} in {first.path}, {names[1]!r} in {other.path}")
        for name in sorted(first.modules.keys() & other.modules.keys()):
            shapes = first.modules[name].shape, other.modules[name].shape
            if shapes[0] != shapes[1]:
                found.append(f"{name}: adds to {shapes[0]} in {first.path}, to {shapes[1]} in {other.path}")
    if base is not None:
        found += (text for adapter in adapters for text in _unfit(adapter, base))
    if found:
        raise Differences(found)


def _unfit(adapter: Adapter, base: Mapping[str, Tensor]) -> Iterator[str]:
    for name, module in adapter.modules.items():
        tensor = base.get(f"{name}.weight")
        if tensor is None:
            yield f"{name}: {adapter.path} adds to it, and the base has no {name}.weight"
        elif tensor.shape != module.shape or tensor.dtype not in FLOATS:
            yield f"{name}: {adapter.path} adds to {module.shape}, and the base has {tensor.dtype} {tensor.shape}"


def read_wide(path: Path, tensor: Tensor) -> NDArray[np.float32]:
    """A whole A or B in fp32. Raises BadCheckpoint, NotFinite."""
    try:
        with tensor.path.open("rb") as file:
            file.seek(tensor.offset)
            content = file.read(tensor.bytes)
    except OSError as error:
        raise BadCheckpoint(tensor.path, error.strerror or str(error)) from error
    if len(content) != tensor.bytes:
        raise BadCheckpoint(tensor.path, f"ends within tensor {tensor.name}")
    held = np.frombuffer(content, FLOATS[tensor.dtype]).reshape(tensor.shape).astype(np.float32)
    if not np.isfinite(held).all():
        raise NotFinite(path, tensor.name, int(np.isnan(held).sum()), int(np.isinf(held).sum()))
    return held


@dataclass(slots=True)
class Added:
    """What an adapter adds to the tensors of its base: an input of a sum, in fp32 (`sources.Source`)."""

    adapter: Adapter
    path: Path = field(init=False)
    files: list[Path] = field(init=False)
    _read: tuple[str, Wide, Wide] | None = None
    """The A and B that were used last, and of what."""

    def __post_init__(self) -> None:
        self.path, self.files = self.adapter.path, self.adapter.files

    def row(self, tensor: Tensor) -> int:
        return 1 if self._module(tensor) is None else tensor.shape[1]

    def place(self, tensor: Tensor, first: int) -> None:
        return None

    def fill(self, tensor: Tensor, first: int, into: Wide) -> None:
        """Whole rows of scale * B A."""
        module = self._module(tensor)
        if module is None:
            into.fill(0)
            return
        if self._read is None or self._read[0] != tensor.name:
            b = read_wide(self.path, module.b) * np.float32(module.scale)
            self._read = tensor.name, read_wide(self.path, module.a), b
        _, a, b = self._read
        columns = tensor.shape[1]
        into[:] = (b[first // columns : (first + into.size) // columns] @ a).ravel()

    def _module(self, tensor: Tensor) -> Module | None:
        return self.adapter.modules.get(tensor.name.removesuffix(".weight")) if len(tensor.shape) == 2 else None
