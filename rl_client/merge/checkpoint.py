"""A checkpoint: a folder of safetensors files with a config and a tokenizer. Reads heads and JSON, no tensor.

Pickled weights (`pytorch_model.bin`, `adapter_model.bin`) are never opened: loading a pickle may run any program.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_client.merge.errors import BadCheckpoint
from rl_client.merge.headers import Head, Tensor, read_head

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
CONFIG = "config.json"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER = "adapter_model.safetensors"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")

#: What belongs to a model beside its weights.
_COPIED = (".json", ".txt", ".model", ".jinja", ".py", ".tiktoken")
#: What has such a name and belongs to one checkpoint alone.
_OWN = {INDEX, "merge.json", "trainer_state.json", ADAPTER_CONFIG, "requirements.txt"}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder, as its heads describe it."""

    path: Path
    files: Mapping[str, Head]
    """By name, in order."""
    config: Mapping[str, Any]
    has_index: bool

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {tensor.name: tensor for head in self.files.values() for tensor in head.tensors}

    @property
    def companions(self) -> list[Path]:
        """The files beside the weights that a merged checkpoint needs, too."""
        with reading(self.path):
            return sorted(
                path
                for path in self.path.iterdir()
                if path.suffix in _COPIED and path.name not in _OWN and path.is_file() and not path.name.startswith(".")
            )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises BadCheckpoint where the disk does not give what is asked for: a folder that others may not look into."""
    try:
        yield
    except OSError as error:
        raise BadCheckpoint(Path(error.filename or path), error.strerror or str(error)) from error


def is_adapter(path: Path) -> bool:
    """Raises BadCheckpoint."""
    with reading(path):
        return (path / ADAPTER_CONFIG).is_file()


def read_checkpoint(path: Path) -> Checkpoint:
    """Raises BadCheckpoint."""
    with reading(path):
        if not path.is_dir():
            raise BadCheckpoint(path, "no such directory")
        if is_adapter(path):
            raise BadCheckpoint(path, "is a LoRA adapter, where a whole checkpoint is needed")
        index = path / INDEX
        files = _indexed(path, index) if index.is_file() else _single(path)
        return Checkpoint(path, files, read_json(path / CONFIG), index.is_file())


def read_json(path: Path) -> dict[str, Any]:
    """An object. Raises BadCheckpoint."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadCheckpoint(path, "is no file that can be read from its beginning to its end")
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadCheckpoint(path, "no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadCheckpoint(path, f"is no JSON that can be read: {error}") from error
    if not isinstance(value, dict):
        raise BadCheckpoint(path, "is no JSON object")
    return value


def refuse_pickles(path: Path) -> None:
    """Raises BadCheckpoint where a folder without safetensors holds pickles."""
    pickles = sorted(one.name for pattern in _PICKLES for one in path.glob(pattern))
    if pickles:
        raise BadCheckpoint(
            path,
            f"has pickled weights alone ({pickles[0]}), which could run any program when they are loaded: "
            "have its owner save it as safetensors",
        )


def _single(path: Path) -> dict[str, Head]:
    found = sorted(path.glob("*.safetensors"))
    if not found:
        refuse_pickles(path)
        raise BadCheckpoint(path, f"has neither {SINGLE} nor {INDEX}")
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise BadCheckpoint(path, f"has several safetensors files ({names}) and no {INDEX} that names those to take")
    return {found[0].name: read_head(found[0])}


def _indexed(path: Path, index: Path) -> dict[str, Head]:
    mapped = read_json(index).get("weight_map")
    if not isinstance(mapped, dict) or not mapped or not all(isinstance(name, str) for name in mapped.values()):
        raise BadCheckpoint(index, "weight_map: is no object that gives each tensor's file")
    for name in mapped.values():
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise BadCheckpoint(index, f"weight_map: {name!r} is no name of a safetensors file beside it")
    if SINGLE not in mapped.values() and (path / SINGLE).is_file():
        raise BadCheckpoint(
            index, f"weight_map: does not name {SINGLE}, which loaders would take instead: remove either"
        )
    files = {}
    for name in sorted(set(mapped.values())):
        if not (path / name).is_file():
            raise BadCheckpoint(index, f"weight_map: {name} is not there")
        files[name] = read_head(path / name)
    for name, head in files.items():
        held = {tensor.name for tensor in head.tensors}
        told = {tensor for tensor, file in mapped.items() if file == name}
        if missing := sorted(told - held):
            raise BadCheckpoint(index, f"weight_map: {name} does not hold {missing[0]}{_and_more(missing)}")
        if extra := sorted(held - told):
            raise BadCheckpoint(index, f"weight_map: does not name {extra[0]}{_and_more(extra)}, which {name} holds")
    return files


def _and_more(names: list[str]) -> str:
    return f" and {len(names) - 1:,} more" if len(names) > 1 else ""
