"""Heads of safetensors files, also of files that are none, or no more."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from rl_client.merge.errors import BadCheckpoint
from rl_client.merge.headers import head_bytes, read_head
from tests.rl_client.merge.checkpoints import tensors


def test_tensors_lie_where_the_head_says(tmp_path: Path) -> None:
    held = tensors(1) | {"ids": np.arange(3), "empty": np.empty((0, 4), np.float32)}
    path = tmp_path / "model.safetensors"
    save_file(held, path, {"format": "pt"})
    head = read_head(path)
    content = path.read_bytes()
    found = {one.name: (one.shape, content[one.offset : one.offset + one.bytes]) for one in head.tensors}
    assert found == {name: (one.shape, one.tobytes()) for name, one in held.items()}
    assert {one.name: one.dtype for one in head.tensors} == dict.fromkeys(tensors(1), "BF16") | {
        "ids": "I64",
        "empty": "F32",
    }
    assert head.metadata == {"format": "pt"}


def test_a_written_head_is_read_by_the_library(tmp_path: Path) -> None:
    path, copy = tmp_path / "model.safetensors", tmp_path / "copy.safetensors"
    save_file(tensors(1), path)
    head = read_head(path)
    body = path.read_bytes()[head.tensors[0].offset :]
    copy.write_bytes(head_bytes(head.tensors, {"format": "pt", "alpha": "-0.5"}) + body)
    with safe_open(copy, "np") as opened:
        assert opened.metadata() == {"format": "pt", "alpha": "-0.5"}
        assert sorted(opened.keys()) == sorted(tensors(1))
    assert read_head(copy).tensors[0].offset % 8 == 0


def test_a_file_cut_short_anywhere_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(tensors(1), path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(BadCheckpoint, match=r"is no safetensors file|is cut short"):
            read_head(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(BadCheckpoint, match="has bytes behind its last tensor"):
        read_head(path)


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ([], "is no JSON object"),
        ({"x": {"dtype": "F32", "shape": [2]}}, "tensor x: needs dtype, shape and data_offsets"),
        ({"x": 3}, "tensor x: needs dtype"),
        ({"x": ENTRY | {"shape": [-2]}}, "tensor x: shape"),
        ({"x": ENTRY | {"shape": [True, 2]}}, "tensor x: shape"),
        ({"x": ENTRY | {"shape": [3]}}, "tensor x: F32 .* does not fit"),
        ({"x": ENTRY | {"data_offsets": [8, 0]}}, "tensor x: F32 .* does not fit"),
        ({"x": ENTRY | {"data_offsets": [-8, 0]}}, "tensor x: F32 .* does not fit"),
        ({"x": ENTRY | {"dtype": "F4"}}, "tensor x: dtype F4 is not known"),
        ({"x": ENTRY, "y": ENTRY}, "tensor y does not begin where the one before it ends"),
        ({"x": ENTRY | {"data_offsets": [8, 16]}}, "tensor x does not begin"),
        ({"x": ENTRY, "__metadata__": {"format": 3}}, "__metadata__ is no object of strings"),
        ({"\ud800": ENTRY}, r"tensor '\\ud800': has a name with half of a surrogate pair"),
    ],
)
def test_a_head_that_is_none_is_refused_with_the_tensor_at_fault(tmp_path: Path, head: Any, reason: str) -> None:
    path = tmp_path / "model.safetensors"
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    with pytest.raises(BadCheckpoint, match=reason) as raised:
        read_head(path)
    assert str(raised.value).startswith(str(path))


def test_a_head_longer_than_the_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 2**63) + bytes(100))
    with pytest.raises(BadCheckpoint, match="is cut short, or no safetensors file"):
        read_head(path)
    path.write_bytes(struct.pack("<Q", 100) + b"[" * 100)
    with pytest.raises(BadCheckpoint, match="its head is no JSON"):
        read_head(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(BadCheckpoint, match="is no file that can be read from its beginning to its end"):
        read_head(tmp_path / "model.safetensors")
