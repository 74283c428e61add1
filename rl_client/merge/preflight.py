"""Whether checkpoints can be averaged at all: names, shapes, types, tied weights, configs, tokenizers.

Everything that differs is found before anything is written, and told at once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rl_client.merge.arithmetic import FLOATS
from rl_client.merge.checkpoint import CONFIG, Checkpoint, reading
from rl_client.merge.errors import BadCheckpoint, Differences
from rl_client.merge.headers import Tensor

#: Of config.json: what says nothing of the model. The types of tensors are compared themselves.
_VOLATILE = {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache", "_attn_implementation"}
#: Files in which a tokenizer has its words.
_VOCABULARIES = ("tokenizer.json", "vocab.json", "tokenizer.model", "spiece.model", "vocab.txt")
_TOKENIZER_FILES = (
    *_VOCABULARIES,
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "chat_template.json",
)
#: The output layer, which models with tied embeddings share with the input's.
_HEAD, _EMBEDDINGS = "lm_head.weight", ("model.embed_tokens.weight", "transformer.wte.weight")
_SCALES = ("_scale", "_scale_inv", "_scales")
_READ_BYTES = 2**20


def compare(checkpoints: Sequence[Checkpoint], allowed: Collection[str] = ()) -> frozenset[str]:
    """The names of tensors that merged checkpoints leave out, since they are tied to others.

    `allowed`: what may differ, in which case the last checkpoint's is taken: keys of config.json, such as
    `eos_token_id` or `rope_scaling.factor`, names of files of the tokenizer. Raises Differences.
    """
    first, *others = checkpoints
    found: list[str] = []
    for one in checkpoints:
        found += _quantized(one)
    for other in others:
        found += (text for what, text in _configs(first, other) if what not in allowed)
        found += (text for what, text in _tokenizers(first.path, other.path) if what not in allowed)
    tied: frozenset[str] = frozenset()
    if all(one.config.get("tie_word_embeddings") for one in checkpoints):
        conflicts = [text for one in checkpoints for text in _untied(one)]
        found += conflicts
        tied = frozenset([_HEAD]) if any(_HEAD in one.tensors for one in checkpoints) and not conflicts else frozenset()
    for other in others:
        found += _tensors(first, other, tied)
    if found:
        raise Differences(found)
    return tied


def _quantized(one: Checkpoint) -> Iterator[str]:
    if one.config.get("quantization_config"):
        yield f"{one.path / CONFIG}: quantization_config: quantized weights are no numbers to average; dequantize first"
        return
    names = one.tensors
    for tensor in names.values():
        scale = next((tensor.name + end for end in _SCALES if tensor.name + end in names), None)
        if tensor.dtype.startswith("F8") and scale is not None:
            yield f"{one.path}: tensor {tensor.name} has its scale in {scale}; dequantize first"


def _configs(first: Checkpoint, other: Checkpoint) -> Iterator[tuple[str, str]]:
    ours, theirs = _flat(first.config), _flat(other.config)
    for key in sorted(ours.keys() | theirs.keys()):
        if key.rpartition(".")[2] not in _VOLATILE and ours.get(key) != theirs.get(key):
            values = f"{_shown(ours, key)} in {first.path}, {_shown(theirs, key)} in {other.path}"
            yield key, f"{CONFIG}: {key}: {values}"


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """By paths such as `rope_scaling.factor`."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = value
    return flat


def _shown(values: Mapping[str, Any], key: str) -> str:
    text = json.dumps(values[key]) if key in values else "not set"
    return text if len(text) <= 60 else text[:57] + "..."


def _tokenizers(first: Path, other: Path) -> Iterator[tuple[str, str]]:
    for name in _TOKENIZER_FILES:
        ours, theirs = first / name, other / name
        if ours.is_file() and theirs.is_file() and _content(ours) != _content(theirs):
            yield name, f"tokenizer: {ours} and {theirs} differ"
    words = [{name for name in _VOCABULARIES if (path / name).is_file()} for path in (first, other)]
    if all(words) and not words[0] & words[1]:
        names = [", ".join(sorted(one)) for one in words]
        yield min(words[1]), f"tokenizer: {first} has {names[0]}, {other} has {names[1]}: they cannot be compared"


def _content(path: Path) -> Any:
    """What a file holds; JSON without regard to how it is laid out."""
    with reading(path):
        text = path.read_bytes()
    if path.suffix != ".json":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _untied(one: Checkpoint) -> Iterator[str]:
    """Where an output layer is there that is to be the embeddings, and is not."""
    tensors = one.tensors
    head = tensors.get(_HEAD)
    embeddings = next((tensors[name] for name in _EMBEDDINGS if name in tensors), None)
    if head is None:
        return
    if embeddings is None:
        yield f"{one.path}: tie_word_embeddings is true, and {_HEAD} is there without embeddings to be tied to"
    elif (head.dtype, head.shape) != (embeddings.dtype, embeddings.shape) or not are_equal(head, embeddings):
        yield f"{one.path}: tie_word_embeddings is true, but {_HEAD} is not {embeddings.name}, and loaders ignore it"


def _tensors(first: Checkpoint, other: Checkpoint, tied: frozenset[str]) -> Iterator[str]:
    ours, theirs = first.tensors, other.tensors
    for name in sorted((ours.keys() | theirs.keys()) - tied):
        one, another = ours.get(name), theirs.get(name)
        if one is None or another is None:
            has, lacks = (first, other) if another is None else (other, first)
            yield f"tensor {name}: is in {has.path}, and not in {lacks.path}"
        elif one.shape != another.shape:
            yield f"tensor {name}: {_sides(one)} in {first.path}, {_sides(another)} in {other.path}"
        elif one.dtype != another.dtype:
            yield f"tensor {name}: {one.dtype} in {first.path}, {another.dtype} in {other.path}"
        elif one.dtype not in FLOATS and not are_equal(one, another):
            yield f"tensor {name}: is {one.dtype}, which cannot be averaged, and is not the same in {other.path}"


def _sides(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a scalar"


def are_equal(one: Tensor, other: Tensor) -> bool:
    """Whether tensors of one size hold the same bytes."""
    left = one.bytes
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(tensor.path.open("rb")) for tensor in (one, other)]
            for file, tensor in zip(files, (one, other), strict=True):
                file.seek(tensor.offset)
            while left:
                parts = [file.read(min(left, _READ_BYTES)) for file in files]
                if parts[0] != parts[1]:
                    return False
                if not parts[0]:
                    raise BadCheckpoint(one.path, f"ends within tensor {one.name}")
                left -= len(parts[0])
    except OSError as error:
        raise BadCheckpoint(one.path, error.strerror or str(error)) from error
    return True
