"""Whether a merged checkpoint is still what was written, and was rightly computed: an oracle in fp64 beside the merge.

Each element must be within the rounding of the exact sum: half a unit of the tensor's type, and, for sums in fp32,
2**-24 of each product and of each partial sum (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from rl_client.merge.arithmetic import FLOATS, PIECE
from rl_client.merge.checkpoint import read_checkpoint, reading
from rl_client.merge.errors import BadCheckpoint
from rl_client.merge.hashing import hashed
from rl_client.merge.headers import Tensor, read_head
from rl_client.merge.records import FORMULA, RECORD, WEIGHTS_FORMULA, InputRecord, MergeRecord
from rl_client.merge.run import Watcher
from rl_client.merge.sources import Stored


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found."""

    files: int
    """That were hashed."""
    computed: int
    """Tensors that were computed again."""
    not_computed: str
    """Why none was."""
    faults: tuple[str, ...]


def verify(folder: Path, tensors: int, watcher: Watcher) -> Checked:
    """Raises BadCheckpoint where the folder is no merged checkpoint that can be read."""
    record = _record(folder)
    watcher.planned(sum(one.bytes for one in record.outputs.values()))
    faults = []
    there = sorted(path.name for path in folder.glob("*.safetensors"))
    if there != sorted(record.outputs):
        faults.append(f"has the files {there}, and {RECORD} names {sorted(record.outputs)}")
    for name in there:
        read_head(folder / name)
        if hashed(folder / name) != record.outputs.get(name):
            faults.append(f"{name} is not what was written: its sha256 is another")
        watcher.advanced((folder / name).stat().st_size)
    for name, written in record.companions.items():
        if not (folder / name).is_file():
            faults.append(f"{name} is there no more")
        elif hashed(folder / name) != written:
            faults.append(f"{name} is not what was written: its sha256 is another")
    computed, why = 0, ""
    if tensors:
        of_adapters = record.formula not in (FORMULA, WEIGHTS_FORMULA)
        why = "made of adapters; none computed again" if of_adapters else _unlike(record.inputs)
        if not why and not faults:
            computed, wrong = _compute(folder, record, tensors)
            faults += wrong
    else:
        why = "none computed again"
    return Checked(len(record.outputs) + len(record.companions), computed, why, tuple(faults))


def _record(folder: Path) -> MergeRecord:
    path = folder / RECORD
    try:
        return MergeRecord.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadCheckpoint(path, error.strerror or str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise BadCheckpoint(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _unlike(inputs: Sequence[InputRecord]) -> str:
    """Why nothing can be computed again; empty where it can."""
    for one in inputs:
        for name, written in one.files.items():
            path = Path(one.path) / name
            try:
                with reading(path):
                    if not path.is_file():
                        return f"{path} is there no more, so none computed again"
                if hashed(path) != written:
                    return f"{path} is not what was merged any more, so none computed again"
            except BadCheckpoint as error:
                return f"{error}, so none computed again"
    return ""


def _compute(folder: Path, record: MergeRecord, tensors: int) -> tuple[int, list[str]]:
    """The number of tensors computed again, and what is wrong with them."""
    merged = read_checkpoint(folder)
    floats = [one for one in merged.tensors.values() if one.dtype in FLOATS and one.elements]
    # By hash, so that the choice is the same each time and favours no layer.
    floats.sort(key=lambda one: hashlib.sha256((record.plan + one.name).encode()).digest())
    chosen = floats[:tensors]
    wrong = []
    with ExitStack() as stack:
        output = stack.enter_context(Stored(merged))
        inputs = [stack.enter_context(Stored(read_checkpoint(Path(one.path)))) for one in record.inputs]
        for tensor in chosen:
            bad = sum(
                _off(tensor, first, min(PIECE, tensor.elements - first), output, inputs, record.weights)
                for first in range(0, tensor.elements, PIECE)
            )
            if bad:
                wrong.append(f"tensor {tensor.name}: {bad:,} elements are not the average of the inputs'")
    return len(chosen), wrong


def _off(
    tensor: Tensor, first: int, count: int, output: Stored, inputs: Sequence[Stored], weights: Sequence[float]
) -> int:
    """How many elements of a piece are further from the exact sum than rounding can bring them."""
    dtype = FLOATS[tensor.dtype]
    raw = np.empty(count * tensor.item_bytes, np.uint8)
    found = output.place(tensor, first).read(raw).view(dtype).astype(np.float64)
    exact = np.zeros(count)
    size = np.zeros(count)
    with np.errstate(over="ignore", invalid="ignore"):
        for source, weight in zip(inputs, weights, strict=True):
            term = weight * source.place(tensor, first).read(raw).view(dtype).astype(np.float64)
            exact += term
            size += abs(term)
        unit = 2.0**-24 if tensor.dtype != "F64" else 2.0**-51
        slack = 2 * len(weights) * unit * size
        near = abs(found - exact) <= slack + _half_unit(exact, dtype)
    # What is beyond the type's range is counted by the merge; here it need only be beyond it.
    beyond = ~np.isfinite(found) & ~(abs(exact) + slack < float(_info(dtype).max))
    return int(np.count_nonzero(~(near | beyond)))


def _half_unit(exact: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Half the distance of the type's numbers around each."""
    info = _info(dtype)
    exponent = np.frexp(np.maximum(abs(exact), float(info.smallest_normal)))[1]
    half: NDArray[np.float64] = np.ldexp(1.0, exponent - 2 - int(info.nmant))
    return half


def _info(dtype: np.dtype[Any]) -> Any:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
