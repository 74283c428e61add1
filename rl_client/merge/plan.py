"""What is to be made of what: the inputs, the outputs, and the files of an output."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from rl_client.merge import records
from rl_client.merge.checkpoint import Checkpoint
from rl_client.merge.errors import BadCheckpoint, CannotWrite
from rl_client.merge.headers import Tensor, head_bytes
from rl_client.merge.output import Output
from rl_client.merge.recipes import Recipe
from rl_client.merge.sources import Source

VERSION = version("rkgrade")
#: Of each output, for what is no tensor.
_SPARE_BYTES = 32 * 2**20

Stamps: TypeAlias = Mapping[Path, tuple[int, int]]
"""Size and time of change (ns) of files."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A merge, all of whose inputs have been held against each other."""

    template: Checkpoint
    """Its files give the outputs theirs: names, order of tensors, config, tokenizer."""
    base: Source | None
    """What adapters are applied to."""
    inputs: Sequence[Source]
    recipes: Sequence[Recipe]
    left_out: frozenset[str]
    """Names of tensors that are tied to others."""
    out: Path
    stamps: Stamps
    """Of what is read or copied, from before anything of it was."""
    takes_not_finite: bool = False
    """Whether NaN and infinities of inputs are counted, where they would end the merge."""

    @property
    def sources(self) -> Sequence[Source]:
        return self.inputs if self.base is None else (self.base, *self.inputs)

    def coefficients(self, recipe: Recipe) -> tuple[float, ...]:
        """Of `sources`."""
        return recipe.coefficients if self.base is None else (1.0, *recipe.coefficients)

    @property
    def files(self) -> list[Path]:
        """All that is read."""
        return [path for source in self.sources for path in source.files]

    @property
    def shards(self) -> dict[str, tuple[Tensor, ...]]:
        """The tensors of each file of an output, as they lie in the template's."""
        kept = {
            name: tuple(one for one in head.tensors if one.name not in self.left_out)
            for name, head in self.template.files.items()
        }
        return {name: tensors for name, tensors in kept.items() if tensors}

    def head(self, recipe: Recipe, tensors: Sequence[Tensor]) -> bytes:
        """Of a file of an output."""
        inputs, base = [source.path for source in self.inputs], None if self.base is None else self.base.path
        formula = self.formula(recipe)
        told = records.metadata(formula, recipe.alpha, recipe.coefficients, inputs, base, VERSION)
        return head_bytes(tensors, told)

    def formula(self, recipe: Recipe) -> str:
        if self.base is not None:
            return records.ADAPTED_FORMULA
        return records.FORMULA if recipe.alpha is not None else records.WEIGHTS_FORMULA

    def identity(self, recipe: Recipe) -> str:
        """The hash of what is done to what."""
        stamps = {path: self.stamps[path] for path in self.files}
        return identity(self.coefficients(recipe), stamps, *sorted(self.left_out), self.takes_not_finite)


def stamps_of(paths: Iterable[Path]) -> Stamps:
    """Raises BadCheckpoint."""
    try:
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}
    except OSError as error:
        raise BadCheckpoint(Path(error.filename), error.strerror or str(error)) from error


def check_unchanged(stamps: Mapping[Path, tuple[int, int] | None]) -> None:
    """Raises BadCheckpoint where a file has changed since, or was not there (None)."""
    for path, stamp in stamps_of(stamps).items():
        if stamp != stamps[path]:
            raise BadCheckpoint(path, "was changed while it was read; merge anew")


def identity(coefficients: Sequence[float], stamps: Stamps, *options: str | bool) -> str:
    """The hash of what is done to what: files go in by name, size and time of change."""
    files = [(str(path.resolve()), stamp) for path, stamp in stamps.items()]
    return "sha256:" + hashlib.sha256(json.dumps([VERSION, coefficients, files, options]).encode()).hexdigest()


def check_room(out: Path, needed: int, outputs: Collection[Output]) -> None:
    """Make the folder of the outputs. Raises CannotWrite where the disk has too little left."""
    needed += _SPARE_BYTES * len(outputs) - sum(one.torn_bytes for one in outputs)
    try:
        out.mkdir(parents=True, exist_ok=True)
        stat = os.statvfs(out)
    except OSError as error:
        raise CannotWrite(out, error.strerror or str(error)) from error
    free = stat.f_bavail * stat.f_frsize
    if needed > free:
        raise CannotWrite(out, f"{needed / 1e9:,.2f} GB are needed there, and {free / 1e9:,.2f} GB are free")
