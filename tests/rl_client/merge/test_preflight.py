"""What is found to differ before anything is written; folders that are no checkpoints."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rl_client.merge.checkpoint import is_adapter, read_checkpoint
from rl_client.merge.errors import BadCheckpoint, Differences
from rl_client.merge.preflight import compare
from tests.rl_client.merge.checkpoints import CONFIG, tensors, write, write_index


def differences(low: Path, high: Path, *allowed: str) -> list[str]:
    try:
        compare([read_checkpoint(low), read_checkpoint(high)], allowed)
    except Differences as error:
        root = f"{low.parent}/"
        return [one.replace(root, "") for one in error.differences]
    return []


def test_alike_checkpoints_do_not_differ(tmp_path: Path) -> None:
    low = write(tmp_path / "low", tensors(1), CONFIG | {"transformers_version": "4", "torch_dtype": "bfloat16"})
    split = tensors(2)
    high = write(tmp_path / "high", [{"norm": split.pop("norm")}, split], CONFIG | {"dtype": "bfloat16"})
    assert differences(low, high) == []


def test_every_difference_is_told_at_once(tmp_path: Path) -> None:
    one = tensors(1) | {"ids": np.arange(4), "only": np.zeros(2, np.float32)}
    other = tensors(2) | {"ids": np.arange(4) + 1, "more": np.zeros(2, np.float32)}
    other["embed"] = tensors(3, embed=(12, 8))["embed"]
    other["norm"] = other["norm"].astype(np.float16)
    rope: dict[str, Any] = {"rope_scaling": {"type": "yarn", "factor": 4.0}}
    low = write(tmp_path / "low", one, CONFIG | rope, tokenizer__json='{"a": 1}', merges__txt="a b")
    high = write(
        tmp_path / "high",
        other,
        CONFIG | {"vocab_size": 12, "rope_scaling": {"type": "yarn", "factor": 8.0}, "eos_token_id": 3},
        tokenizer__json='{"a": 2}',
        merges__txt="a b",
    )
    assert differences(low, high) == [
        "config.json: eos_token_id: not set in low, 3 in high",
        "config.json: rope_scaling.factor: 4.0 in low, 8.0 in high",
        "config.json: vocab_size: 11 in low, 12 in high",
        "tokenizer: low/tokenizer.json and high/tokenizer.json differ",
        "tensor embed: 11x8 in low, 12x8 in high",
        "tensor ids: is I64, which cannot be averaged, and is not the same in high",
        "tensor more: is in high, and not in low",
        "tensor norm: BF16 in low, F16 in high",
        "tensor only: is in low, and not in high",
    ]


def test_what_is_allowed_may_differ(tmp_path: Path) -> None:
    low = write(tmp_path / "low", tensors(1), CONFIG | {"eos_token_id": 1}, tokenizer_config__json="{}")
    high = write(tmp_path / "high", tensors(2), CONFIG | {"eos_token_id": 2}, tokenizer_config__json='{"x": 1}')
    assert len(differences(low, high)) == 2
    assert differences(low, high, "eos_token_id", "tokenizer_config.json") == []


def test_json_of_tokenizers_is_compared_by_what_it_says(tmp_path: Path) -> None:
    low = write(tmp_path / "low", tensors(1), tokenizer__json='{"a": 1, "b": 2}')
    high = write(tmp_path / "high", tensors(2), tokenizer__json='{"b": 2,\n "a": 1}')
    assert differences(low, high) == []


def test_tokenizers_in_different_forms_cannot_be_compared(tmp_path: Path) -> None:
    low = write(tmp_path / "low", tensors(1), tokenizer__json="{}")
    high = write(tmp_path / "high", tensors(2), tokenizer__model=b"\0")
    assert differences(low, high) == [
        "tokenizer: low has tokenizer.json, high has tokenizer.model: they cannot be compared"
    ]
    assert differences(low, high, "tokenizer.model") == []


TIED = CONFIG | {"tie_word_embeddings": True}


def tied(seed: int) -> dict[str, Any]:
    return tensors(seed, **{"model.embed_tokens.weight": (11, 8), "norm": (8,)})


def test_an_output_layer_that_is_the_embeddings_is_left_out(tmp_path: Path) -> None:
    one, other = tied(1), tied(2)
    low = write(tmp_path / "low", one | {"lm_head.weight": one["model.embed_tokens.weight"]}, TIED)
    high = write(tmp_path / "high", other, TIED)
    assert compare([read_checkpoint(low), read_checkpoint(high)]) == {"lm_head.weight"}
    assert compare([read_checkpoint(high), read_checkpoint(high)]) == frozenset()


def test_an_output_layer_that_should_be_the_embeddings_and_is_not_is_told(tmp_path: Path) -> None:
    one, other = tied(1), tied(2)
    low = write(tmp_path / "low", one | {"lm_head.weight": other["model.embed_tokens.weight"]}, TIED)
    high = write(tmp_path / "high", other, TIED)
    assert differences(low, high) == [
        "low: tie_word_embeddings is true, but lm_head.weight is not model.embed_tokens.weight, and loaders ignore it",
        "tensor lm_head.weight: is in low, and not in high",
    ]
    untied = write(tmp_path / "untied", one | {"lm_head.weight": other["model.embed_tokens.weight"]}, CONFIG)
    assert differences(untied, high) == [
        "config.json: tie_word_embeddings: false in untied, true in high",
        "tensor lm_head.weight: is in untied, and not in high",
    ]


def test_quantized_weights_are_refused(tmp_path: Path) -> None:
    eight = {"q": np.ones((2, 2), ml_dtypes.float8_e4m3fn), "q_scale_inv": np.ones(1, np.float32)}
    low, high = write(tmp_path / "low", eight), write(tmp_path / "high", tensors(1) | eight)
    assert "low: tensor q has its scale in q_scale_inv; dequantize first" in differences(low, high)
    packed = write(tmp_path / "packed", tensors(1), CONFIG | {"quantization_config": {"bits": 4}})
    assert any("packed/config.json: quantization_config: " in one for one in differences(packed, packed))


class Bomb:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (Path.touch, (Path("exploded"),))  # type: ignore[return-value]


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth"])
def test_pickles_are_refused_unopened(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write(tmp_path / "x", tensors(1))
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(BadCheckpoint, match=rf"pickled weights alone \({name}\)"):
        read_checkpoint(folder)
    assert not Path("exploded").exists()


def parts(path: Path) -> Path:
    held = tensors(1)
    return write(path, [{"norm": held.pop("norm")}, held])


FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
ALONE = "weight_map: does not name model.safetensors, which loaders would take instead"


@pytest.mark.parametrize(
    ("mapped", "reason"),
    [
        ({"norm": FIRST}, None),
        ({"norm": FIRST, "embed": SECOND}, f"weight_map: does not name q.bias and 2 more, which {SECOND} holds"),
        ({"norm": FIRST, "ghost": FIRST}, f"weight_map: {FIRST} does not hold ghost"),
        ({"norm": "model-00003-of-00002.safetensors"}, "weight_map: model-00003-of-00002.safetensors is not there"),
        ({"norm": "../low/model.safetensors"}, "is no name of a safetensors file beside it"),
        ({"norm": "pytorch_model.bin"}, "is no name of a safetensors file beside it"),
        ({"norm": FIRST}, ALONE),
        ({"norm": 3}, "weight_map: is no object"),
        ({}, "weight_map: is no object"),
    ],
)
def test_a_wrong_index_is_refused(tmp_path: Path, mapped: Any, reason: str | None) -> None:
    folder = parts(tmp_path / "x")
    write_index(folder, mapped)
    if reason == ALONE:
        (folder / "model.safetensors").touch()
    if reason is None:
        assert list(read_checkpoint(folder).tensors) == ["norm"]
    else:
        with pytest.raises(BadCheckpoint) as raised:
            read_checkpoint(folder)
        assert reason in str(raised.value)


def test_folders_that_are_no_checkpoints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="no such directory"):
        read_checkpoint(tmp_path / "x")
    with pytest.raises(BadCheckpoint, match="has neither"):
        read_checkpoint(tmp_path)
    folder = parts(tmp_path / "x")
    (folder / "model.safetensors.index.json").write_text("{")
    with pytest.raises(BadCheckpoint, match="is no JSON that can be read"):
        read_checkpoint(folder)
    (folder / "model.safetensors.index.json").unlink()
    with pytest.raises(BadCheckpoint, match="several safetensors files"):
        read_checkpoint(folder)
    (folder / FIRST).unlink()
    (folder / "config.json").write_text(json.dumps([1]))
    with pytest.raises(BadCheckpoint, match=r"config\.json: is no JSON object"):
        read_checkpoint(folder)
    (folder / "config.json").unlink()
    with pytest.raises(BadCheckpoint, match=r"config\.json: no such file"):
        read_checkpoint(folder)
    os.mkfifo(folder / "config.json")
    with pytest.raises(BadCheckpoint, match=r"config\.json: is no file that can be read from its beginning"):
        read_checkpoint(folder)


def test_what_cannot_be_looked_into_or_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="File name too long"):
        read_checkpoint(tmp_path / ("x" * 300))
    with pytest.raises(BadCheckpoint, match="File name too long"):
        is_adapter(tmp_path / ("x" * 300))
    pair = [write(tmp_path / name, tensors(1), tokenizer__json="{}") for name in ("low", "high")]
    # Root may read all that lies on a disk.
    (pair[1] / "tokenizer.json").unlink()
    (pair[1] / "tokenizer.json").symlink_to("/proc/self/mem")
    with pytest.raises(BadCheckpoint, match=r"tokenizer\.json: Input/output error"):
        compare([read_checkpoint(path) for path in pair])
