"""Merged checkpoints that were changed, or wrongly computed, are found out."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_client.merge.errors import BadCheckpoint
from rl_client.merge.headers import read_head
from rl_client.merge.verifying import Checked, verify
from tests.rl_client.merge.checkpoints import BF16, Silent, average, tensors, write


def merged(folder: Path, alpha: float = -0.5, dtype: Any = BF16) -> Path:
    low = write(folder / "low", tensors(1, dtype) | {"ids": np.arange(3)})
    high = write(folder / "high", tensors(2, dtype) | {"ids": np.arange(3)})
    return average(folder / "out", [low, high], alpha)[0].path


@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32, np.float64, "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("alpha", [-0.5, 0, 0.3, 1, 1.7])
def test_what_was_merged_is_right(tmp_path: Path, alpha: float, dtype: Any) -> None:
    assert verify(merged(tmp_path, alpha, dtype), 99, Silent()) == Checked(2, 5, "", ())
    assert verify(tmp_path / "out" / f"alpha={alpha}", 2, Silent()).computed == 2
    assert verify(tmp_path / "out" / f"alpha={alpha}", 0, Silent()).computed == 0


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    folder = merged(tmp_path)
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    checked = verify(folder, 99, Silent())
    assert checked.faults == ("model.safetensors is not what was written: its sha256 is another",)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors.index.json"])
def test_a_flipped_bit_beside_the_tensors_is_found(tmp_path: Path, name: str) -> None:
    """A config of other numbers is another model."""
    pair = [write(tmp_path / side, [tensors(seed)], tokenizer__json="{}") for seed, side in enumerate(("low", "high"))]
    folder = average(tmp_path / "out", pair, 0.5)[0].path
    assert verify(folder, 99, Silent()) == Checked(4, 5, "", ())
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)
    assert verify(folder, 99, Silent()).faults == (f"{name} is not what was written: its sha256 is another",)
    (folder / name).unlink()
    assert verify(folder, 99, Silent()).faults == (f"{name} is there no more",)


def test_a_record_of_before_tells_of_tensors_alone(tmp_path: Path) -> None:
    folder = merged(tmp_path)
    record = json.loads((folder / "merge.json").read_text())
    del record["companions"]
    (folder / "merge.json").write_text(json.dumps(record))
    assert verify(folder, 0, Silent()).files == 1


@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32])
def test_an_average_off_by_one_unit_is_found(tmp_path: Path, dtype: Any) -> None:
    """As if it had been written so: with the hash that fits."""
    folder = merged(tmp_path, dtype=dtype)
    path = folder / "model.safetensors"
    (tensor,) = (one for one in read_head(path).tensors if one.name == "q.weight")
    content = bytearray(path.read_bytes())
    # fp32's own sums are off by a few units, so there it takes more.
    content[tensor.offset] ^= 1 if tensor.item_bytes == 2 else 64
    path.write_bytes(content)
    record = json.loads((folder / "merge.json").read_text())
    record["outputs"]["model.safetensors"]["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "merge.json").write_text(json.dumps(record))
    checked = verify(folder, 99, Silent())
    assert checked.faults == ("tensor q.weight: 1 elements are not the average of the inputs'",)


def test_without_the_inputs_only_hashes_are_checked(tmp_path: Path) -> None:
    folder = merged(tmp_path)
    path = tmp_path / "low/model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    assert verify(folder, 9, Silent()) == Checked(
        2, 0, f"{path} is not what was merged any more, so none computed again", ()
    )
    path.unlink()
    # What it cannot read it cannot compute with.
    path.symlink_to("/proc/self/mem")
    assert "Input/output error, so none computed again" in verify(folder, 9, Silent()).not_computed
    shutil.rmtree(tmp_path / "low")
    assert verify(folder, 9, Silent()) == Checked(2, 0, f"{path} is there no more, so none computed again", ())


def test_a_folder_that_is_no_merge_is_refused(tmp_path: Path) -> None:
    low = write(tmp_path / "low", tensors(1))
    with pytest.raises(BadCheckpoint, match=r"merge\.json: No such file"):
        verify(low, 1, Silent())
    (low / "merge.json").write_text("{}")
    with pytest.raises(BadCheckpoint, match=r"merge\.json: rkgrade: Field required"):
        verify(low, 1, Silent())
    folder = merged(tmp_path / "x")
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    assert "merge.json names ['model.safetensors']" in verify(folder, 1, Silent()).faults[0]
