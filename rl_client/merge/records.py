"""What a merge leaves behind: `merge.json`, the lines of its journal, and the model card."""

from __future__ import annotations

import builtins
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from rl_client.merge.arithmetic import Counts

RECORD = "merge.json"
CARD = "README.md"
FORMULA = "theta = alpha * high + (1 - alpha) * low"
WEIGHTS_FORMULA = "theta = sum of weights[i] * inputs[i]"
RANKS_FORMULA = "B A = sum of weights[i] * scale[i] * B[i] A[i], as the ranks of all one after the other"
ADAPTED_FORMULA = "theta = base + sum of weights[i] * scale[i] * B[i] A[i]"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileRecord(_Record):
    bytes: int
    sha256: str

    @classmethod
    def of(cls, content: builtins.bytes) -> FileRecord:
        return cls(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


class InputRecord(_Record):
    path: str
    files: dict[str, FileRecord]


class NotFiniteRecord(_Record):
    nan: int
    infinite: int
    overflow: int
    """Of both: those that are finite in every input."""

    @classmethod
    def of(cls, counts: Counts) -> NotFiniteRecord:
        return cls(nan=counts.nan, infinite=counts.infinite, overflow=counts.overflow)


class Change(_Record):
    """How far a tensor of each input but the first is from the first's; of adapters, from the base's."""

    relative: tuple[float | None, ...]
    """||other - first|| / ||first||, 2-norms; None where the first is all zeros, or holds what is no number."""
    unchanged: tuple[float, ...]
    """The share of elements that are the same bits."""


class ShardRecord(_Record):
    """A line of the journal: a file that is whole and on the disk."""

    file: str
    written: FileRecord
    not_finite: dict[str, NotFiniteRecord]
    """By tensor; of those that have any."""
    changes: dict[str, Change]
    """By tensor."""


class PlanRecord(_Record):
    """The journal's first line."""

    plan: str


class MergeRecord(_Record):
    rkgrade: str
    plan: str
    """The hash of what was to be done to what."""
    formula: str
    alpha: float | None
    weights: tuple[float, ...]
    """Of the inputs, in order."""
    inputs: tuple[InputRecord, ...]
    base: InputRecord | None
    """What adapters were applied to."""
    outputs: dict[str, FileRecord]
    """Of tensors."""
    companions: dict[str, FileRecord] = {}
    """The config, the tokenizer, the index; records of before have none."""
    tensors: int
    parameters: int
    left_out: tuple[str, ...]
    """Tensors that are tied to others."""
    not_finite: dict[str, NotFiniteRecord]
    changes: dict[str, Change]

    @property
    def total_not_finite(self) -> Counts:
        total = Counts()
        for one in self.not_finite.values():
            total.add(Counts(one.nan, one.infinite, one.overflow))
        return total


def card(record: MergeRecord) -> str:
    """The model card: https://huggingface.co/docs/hub/model-cards."""
    inputs = ((record.base,) if record.base is not None else ()) + record.inputs
    names = [Path(one.path).name for one in inputs]
    weights = [f"{weight:g}" for weight in record.weights]
    if record.base is not None:
        weights.insert(0, "base")
    rows = [
        f"| {_cell(name)} | {weight} | `{file}` | `{held.sha256}` |"
        for one, name, weight in zip(inputs, names, weights, strict=True)
        for file, held in one.files.items()
    ]
    what = f"alpha = {record.alpha:g}" if record.alpha is not None else "the weights below"
    lines = [
        "---",
        "base_model:",
        *(f"- {json.dumps(name)}" for name in names),
        "library_name: transformers",
        "tags:",
        "- merge",
        "- rkgrade",
        "---",
        "",
        f"Made by rkgrade {record.rkgrade} with `{record.formula}`, {what}. `{RECORD}` has all that is known of it.",
        "",
        "| input | weight | file | sha256 |",
        "| --- | --- | --- | --- |",
        *rows,
        "",
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Of a table, which lines and bars of it would end."""
    return " ".join(text.split()).replace("|", r"\|")


def metadata(
    formula: str,
    alpha: float | None,
    weights: tuple[float, ...],
    inputs: Sequence[Path],
    base: Path | None,
    version: str,
) -> Mapping[str, str]:
    """What a safetensors file says of itself; `format` is what transformers asks for. Of the folders their names alone,
    as on the card, so that the same merge is the same file everywhere.
    """
    told: dict[str, str] = {"format": "pt", "rkgrade": version, "formula": formula}
    told["inputs"] = json.dumps([path.resolve().name for path in inputs])
    told["weights"] = json.dumps(weights)
    if base is not None:
        told["base"] = base.resolve().name
    if alpha is not None:
        told["alpha"] = repr(alpha)
    return told
