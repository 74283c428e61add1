"""Sums of LoRA adapters as one adapter: their ranks one after the other, layer by layer.

Written in fp32, so that nothing is rounded but coefficient * scale * B, at 2**-24. An adapter alone, with a coefficient
of 1, is copied as it is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_client.merge import records
from rl_client.merge.adapters import PREFIX, Adapter, compare_adapters, read_wide
from rl_client.merge.arithmetic import FLOATS, Counts, copied_input
from rl_client.merge.checkpoint import ADAPTER, ADAPTER_CONFIG
from rl_client.merge.hashing import hashed
from rl_client.merge.headers import ITEM_BYTES, Tensor, head_bytes, read_head
from rl_client.merge.output import Output
from rl_client.merge.plan import VERSION, check_room, check_unchanged, identity, stamps_of
from rl_client.merge.recipes import Recipe
from rl_client.merge.records import InputRecord, MergeRecord, NotFiniteRecord, ShardRecord
from rl_client.merge.run import Watcher


def concatenate(
    adapters: Sequence[Adapter], recipes: Sequence[Recipe], out: Path, watcher: Watcher, allowed: Collection[str] = ()
) -> list[Output]:
    """Write an adapter for each recipe; those that are there stay as they are. Raises MergeError."""
    compare_adapters(adapters, None, allowed)
    stamps = stamps_of([path for adapter in adapters for path in adapter.files])
    outputs = [Output(out / one.name, identity(one.coefficients, stamps, "ranks")) for one in recipes]
    todo = [(output, recipe) for output, recipe in zip(outputs, recipes, strict=True) if not output.is_whole]
    layouts = {recipe.name: _layout(adapters, recipe) for _, recipe in todo}
    left = [layouts[recipe.name] for output, recipe in todo if ADAPTER not in output.done]
    total = sum(tensor.bytes for tensors in left for tensor in tensors)
    watcher.planned(total)
    if todo:
        check_room(out, total, [output for output, _ in todo])
    with ExitStack() as stack:
        for output, _ in todo:
            stack.enter_context(output.begun())
        for output, recipe in todo:
            if ADAPTER not in output.done:
                _write(output, adapters, recipe, layouts[recipe.name], watcher)
        inputs = tuple(
            InputRecord(path=str(one.path.resolve()), files={path.name: hashed(path) for path in one.files})
            for one in (adapters if todo else ())
        )
        check_unchanged(stamps)
        for output, recipe in todo:
            record = _record(output, recipe, inputs, layouts[recipe.name])
            config = json.dumps(_config(adapters, recipe), indent=2) + "\n"
            files = {ADAPTER_CONFIG: config.encode(), records.CARD: records.card(record).encode()}
            output.finish(record, files)
    return outputs


def _parts(adapters: Sequence[Adapter], recipe: Recipe) -> list[tuple[Adapter, float]]:
    """The adapters that count, with their coefficients. Of coefficients that are all 0 the first, so that it is one."""
    return [(one, value) for one, value in zip(adapters, recipe.coefficients, strict=True) if value] or [
        (adapters[0], 0.0)
    ]


def _ranks(adapters: Sequence[Adapter], recipe: Recipe) -> dict[str, int]:
    """Of the layers that anything is added to."""
    ranks: Counter[str] = Counter()
    for adapter, _ in _parts(adapters, recipe):
        ranks.update({name: module.rank for name, module in adapter.modules.items()})
    return dict(sorted(ranks.items()))


def _layout(adapters: Sequence[Adapter], recipe: Recipe) -> tuple[Tensor, ...]:
    """The tensors of the output; their offsets say nothing."""
    copied = copied_input(recipe.coefficients)
    if copied is not None:
        return read_head(adapters[copied].path / ADAPTER).tensors
    shapes: dict[str, tuple[int, int]] = {}
    for adapter, _ in _parts(adapters, recipe):
        shapes |= {name: module.shape for name, module in adapter.modules.items()}
    tensors = []
    for name, rank in _ranks(adapters, recipe).items():
        rows, columns = shapes[name]
        for side, shape in (("A", (rank, columns)), ("B", (rows, rank))):
            size = shape[0] * shape[1] * ITEM_BYTES["F32"]
            tensors.append(Tensor(f"{PREFIX}{name}.lora_{side}.weight", "F32", shape, Path(ADAPTER), 0, size))
    return tuple(tensors)


def _write(
    output: Output, adapters: Sequence[Adapter], recipe: Recipe, layout: tuple[Tensor, ...], watcher: Watcher
) -> None:
    inputs = [adapter.path for adapter in adapters]
    told = records.metadata(records.RANKS_FORMULA, recipe.alpha, recipe.coefficients, inputs, None, VERSION)
    shard = output.shard(ADAPTER, head_bytes(layout, told))
    try:
        copied = copied_input(recipe.coefficients)
        not_finite = {}
        parts = _computed(adapters, recipe) if copied is None else _copied(adapters[copied], layout)
        for tensor, part in zip(layout, parts, strict=True):
            if counts := _overflown(tensor, part):
                not_finite[tensor.name] = NotFiniteRecord.of(counts)
            shard.write(part)
            watcher.advanced(len(part))
        written = shard.close()
    finally:
        shard.drop()
    output.add(ShardRecord(file=ADAPTER, written=written, not_finite=not_finite, changes={}))


def _overflown(tensor: Tensor, content: memoryview) -> Counts:
    """Elements that are no numbers, which those they were made of all are."""
    held = np.frombuffer(content, FLOATS[tensor.dtype])
    nan, infinite = int(np.isnan(held).sum()), int(np.isinf(held).sum())
    return Counts(nan, infinite, overflow=nan + infinite)


def _copied(adapter: Adapter, layout: tuple[Tensor, ...]) -> Iterator[memoryview]:
    """Raises NotFinite as well."""
    for tensor in layout:
        read_wide(adapter.path, tensor)
        with tensor.path.open("rb") as file:
            file.seek(tensor.offset)
            yield memoryview(file.read(tensor.bytes))


def _computed(adapters: Sequence[Adapter], recipe: Recipe) -> Iterator[memoryview]:
    """A and B of each layer, in order."""
    for name in _ranks(adapters, recipe):
        parts = [(one, one.modules[name], value) for one, value in _parts(adapters, recipe) if name in one.modules]
        yield _bytes(np.concatenate([read_wide(one.path, module.a) for one, module, _ in parts], axis=0))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = [read_wide(one.path, module.b) * np.float32(value * module.scale) for one, module, value in parts]
        yield _bytes(np.concatenate(scaled, axis=1))


def _bytes(held: NDArray[np.float32]) -> memoryview:
    return np.ascontiguousarray(held).reshape(-1).view(np.uint8).data


def _config(adapters: Sequence[Adapter], recipe: Recipe) -> dict[str, Any]:
    copied = copied_input(recipe.coefficients)
    if copied is not None:
        return dict(adapters[copied].config)
    ranks = _ranks(adapters, recipe)
    ((common, _),) = Counter(ranks.values()).most_common(1)
    odd = {name: rank for name, rank in ranks.items() if rank != common}
    return dict(adapters[-1].config) | {
        "r": common,
        "lora_alpha": common,
        "rank_pattern": odd,
        "alpha_pattern": odd,
        "use_rslora": False,
        "target_modules": sorted(ranks),
        "layers_to_transform": None,
        "layers_pattern": None,
        "exclude_modules": None,
        "inference_mode": True,
    }


def _record(output: Output, recipe: Recipe, inputs: tuple[InputRecord, ...], layout: tuple[Tensor, ...]) -> MergeRecord:
    return MergeRecord(
        rkgrade=VERSION,
        plan=output.plan,
        formula=records.RANKS_FORMULA,
        alpha=recipe.alpha,
        weights=recipe.coefficients,
        inputs=inputs,
        base=None,
        outputs={ADAPTER: output.done[ADAPTER].written},
        tensors=len(layout),
        parameters=sum(tensor.elements for tensor in layout),
        left_out=(),
        not_finite=output.done[ADAPTER].not_finite,
        changes={},
    )
