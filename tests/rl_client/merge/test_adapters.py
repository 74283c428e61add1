"""LoRA adapters: added to a base, or to each other, as dense matrices say."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from rl_client.merge.adapters import read_adapter
from rl_client.merge.arithmetic import Counts
from rl_client.merge.concatenating import concatenate
from rl_client.merge.errors import BadCheckpoint, Differences, NotFinite
from rl_client.merge.opening import opened
from rl_client.merge.output import Output
from rl_client.merge.recipes import of_alpha, of_weights
from rl_client.merge.records import MergeRecord
from rl_client.merge.run import merge
from rl_client.merge.verifying import Checked, verify
from tests.rl_client.merge.checkpoints import CONFIG, Silent, as_bytes, read, tensors, write

BASE = {"layers.0.q.weight": (6, 5), "layers.0.o.weight": (5, 6), "layers.1.q.weight": (6, 5), "norm": (5,)}
ADAPTER: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", "base_model_name_or_path": "b"}
PREFIX = "base_model.model."


def adapter(
    path: Path,
    seed: int,
    *modules: str,
    config: Mapping[str, Any] = MappingProxyType({}),
    dtype: Any = np.float32,
    rank: int = 2,
) -> Path:
    """Of some layers of `BASE`."""
    random = np.random.default_rng(seed)
    held = {}
    for module in modules:
        rows, columns = BASE[f"{module}.weight"]
        held[f"{PREFIX}{module}.lora_A.weight"] = random.normal(size=(rank, columns)).astype(dtype)
        held[f"{PREFIX}{module}.lora_B.weight"] = random.normal(size=(rows, rank)).astype(dtype)
    path.mkdir(parents=True)
    save_file(held, path / "adapter_model.safetensors")
    told = ADAPTER | {"r": rank, "target_modules": list(modules)} | dict(config)
    (path / "adapter_config.json").write_text(json.dumps(told))
    return path


def added(path: Path) -> dict[str, NDArray[np.float64]]:
    """What an adapter adds, by the formula, where a layer has no pattern that the end of its name does not say."""
    config = json.loads((path / "adapter_config.json").read_text())
    held = read(path)
    changes = {}
    for name in {one.removeprefix(PREFIX).rpartition(".lora_")[0] for one in held}:
        a, b = (held[f"{PREFIX}{name}.lora_{side}.weight"].astype(np.float64) for side in "AB")
        alpha = next((v for k, v in config.get("alpha_pattern", {}).items() if name.endswith(k)), config["lora_alpha"])
        rank = next((v for k, v in config.get("rank_pattern", {}).items() if name.endswith(k)), config["r"])
        changes[f"{name}.weight"] = alpha / (rank**0.5 if config.get("use_rslora") else rank) * b @ a
    return changes


def close(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    return bool(np.allclose(found.astype(np.float64), expected, rtol=0, atol=2e-5))


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Of other layers, ranks and scales."""
    low = adapter(tmp_path / "low", 1, "layers.0.q", "layers.0.o", config={"alpha_pattern": {"o": 3}})
    high = adapter(tmp_path / "high", 2, "layers.0.q", "layers.1.q", config={"use_rslora": True}, rank=3)
    return [low, high]


@pytest.mark.parametrize("alpha", [-0.5, 0, 0.3, 1, 1.5])
def test_adapters_are_applied_while_the_base_streams_by(tmp_path: Path, two: list[Path], alpha: float) -> None:
    held = tensors(3, np.float32, **BASE)
    base = write(tmp_path / "base", held)
    with opened(two, base, [of_alpha(alpha)], tmp_path / "out") as plan:
        (output,) = merge(plan, Silent())
    low, high = map(added, two)
    found = read(output.path)
    assert sorted(found) == sorted(held)
    for name, one in held.items():
        zero = np.zeros(one.shape)
        assert close(found[name], one + (1 - alpha) * low.get(name, zero) + alpha * high.get(name, zero))
    assert found["norm"].tobytes() == held["norm"].tobytes()
    record = output.record
    assert record is not None
    assert record.base is not None
    assert record.base.path == str(base)
    assert [sorted(one.files) for one in record.inputs] == [["adapter_config.json", "adapter_model.safetensors"]] * 2
    expected = np.linalg.norm(low["layers.0.o.weight"]) / np.linalg.norm(held["layers.0.o.weight"])
    assert record.changes["layers.0.o.weight"].relative == (pytest.approx(expected, rel=1e-5), 0)
    assert record.changes["norm"].unchanged == (1, 1)
    assert verify(output.path, 9, Silent()) == Checked(2, 0, "made of adapters; none computed again", ())


def test_a_base_in_bf16_is_rounded_once(tmp_path: Path, two: list[Path]) -> None:
    held = tensors(3, **BASE)
    base = write(tmp_path / "base", held)
    with opened(two, base, [of_alpha(1.5)], tmp_path / "out") as plan:
        (output,) = merge(plan, Silent())
    low, high = map(added, two)
    name = "layers.0.q.weight"
    exact = held[name].astype(np.float64) - 0.5 * low[name] + 1.5 * high[name]
    assert (read(output.path)[name] == exact.astype(np.float32).astype(ml_dtypes.bfloat16)).mean() > 0.9
    assert np.allclose(read(output.path)[name].astype(np.float64), exact, rtol=2**-8, atol=1e-6)


def test_a_layer_larger_than_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    rows, columns = 1200, 500
    held = {"big.weight": random.normal(size=(rows, columns)).astype(np.float32)}
    base = write(tmp_path / "base", held)
    monkeypatch.setitem(BASE, "big.weight", (rows, columns))
    paths = [adapter(tmp_path / str(seed), seed, "big") for seed in (1, 2)]
    with opened(paths, base, [of_alpha(0.25)], tmp_path / "out") as plan:
        (output,) = merge(plan, Silent())
    low, high = (added(path)["big.weight"] for path in paths)
    assert close(read(output.path)["big.weight"], held["big.weight"] + 0.75 * low + 0.25 * high)


@pytest.mark.parametrize("alpha", [-0.5, 0.3, 1.5])
def test_adapters_alone_become_one_of_all_their_ranks(tmp_path: Path, two: list[Path], alpha: float) -> None:
    watcher = Silent()
    (output,) = concatenate([read_adapter(path) for path in two], [of_alpha(alpha)], tmp_path / "out", watcher)
    assert watcher.done == watcher.total
    low, high = map(added, two)
    found = added(output.path)
    assert sorted(found) == sorted(low | high)
    for name, one in found.items():
        zero = np.zeros(one.shape)
        assert close(one, (1 - alpha) * low.get(name, zero) + alpha * high.get(name, zero))
    config = json.loads((output.path / "adapter_config.json").read_text())
    assert {read_adapter(output.path).modules[name].rank for name in ("layers.0.q",)} == {5}
    assert config["target_modules"] == ["layers.0.o", "layers.0.q", "layers.1.q"]
    assert config["base_model_name_or_path"] == "b"
    assert verify(output.path, 9, Silent()) == Checked(2, 0, "made of adapters; none computed again", ())
    before = (output.path / "adapter_model.safetensors").stat().st_mtime_ns
    concatenate([read_adapter(path) for path in two], [of_alpha(alpha)], tmp_path / "out", Silent())
    assert (output.path / "adapter_model.safetensors").stat().st_mtime_ns == before


def test_an_adapter_of_adapters_does_the_same_to_a_base(tmp_path: Path, two: list[Path]) -> None:
    base = write(tmp_path / "base", tensors(3, np.float32, **BASE))
    recipe = of_alpha(-0.5)
    (one,) = concatenate([read_adapter(path) for path in two], [recipe], tmp_path / "one", Silent())
    with opened([one.path], base, [of_weights("1", 1)], tmp_path / "of_one") as plan:
        (of_one,) = merge(plan, Silent())
    with opened(two, base, [recipe], tmp_path / "of_two") as plan:
        (of_two,) = merge(plan, Silent())
    first, second = read(of_one.path), read(of_two.path)
    assert all(close(first[name], second[name]) for name in BASE)


def test_the_ends_are_the_adapters_themselves(tmp_path: Path, two: list[Path]) -> None:
    outputs = concatenate([read_adapter(path) for path in two], [of_alpha(0), of_alpha(1)], tmp_path / "out", Silent())
    for output, path in zip(outputs, two, strict=True):
        assert as_bytes(read(output.path)) == as_bytes(read(path))
        configs = [json.loads((folder / "adapter_config.json").read_text()) for folder in (output.path, path)]
        assert configs[0] == configs[1]


def test_adapters_that_were_done_when_a_merge_was_interrupted_are_not_written_again(
    tmp_path: Path, two: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    adapters, recipes = [read_adapter(path) for path in two], [of_alpha(0.5)]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Output, "finish", interrupt)
        concatenate(adapters, recipes, tmp_path / "out", Silent())
    watcher = Silent()
    (output,) = concatenate(adapters, recipes, tmp_path / "out", watcher)
    assert watcher.total == watcher.done == 0
    assert verify(output.path, 0, Silent()) == Checked(2, 0, "none computed again", ())


def test_three_adapters_with_weights_of_any_sum(tmp_path: Path, two: list[Path]) -> None:
    third = adapter(tmp_path / "third", 5, "layers.0.q", dtype=ml_dtypes.bfloat16)
    recipes = [of_weights("1,1,-0.5", 3, of_changes=True), of_weights("0,0,0", 3, of_changes=True)]
    outputs = concatenate([read_adapter(path) for path in (*two, third)], recipes, tmp_path / "out", Silent())
    name = "layers.0.q.weight"
    low, high, last = (added(path)[name] for path in (*two, third))
    assert close(added(outputs[0].path)[name], low + high - 0.5 * last)
    assert not any(change.any() for change in added(outputs[1].path).values())
    record = MergeRecord.model_validate_json((outputs[0].path / "merge.json").read_bytes())
    assert (record.alpha, record.weights, len(record.inputs)) == (None, (1, 1, -0.5), 3)


@pytest.mark.parametrize(
    "change",
    [
        {"peft_type": "LOHA"},
        {"use_dora": True},
        {"bias": "all"},
        {"fan_in_fan_out": True},
        {"modules_to_save": ["lm_head"]},
        {"init_lora_weights": "pissa"},
        {"layer_replication": [[0, 1]]},
        {"lora_alpha": "many"},
        {"lora_alpha": 10**400},
        {"rank_pattern": ["q"]},
        {"alpha_pattern": {"(": 1}},
    ],
)
def test_adapters_that_are_more_than_b_times_a_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = adapter(tmp_path / "x", 1, "layers.0.q", config=change)
    with pytest.raises(BadCheckpoint, match=rf"adapter_config\.json: {next(iter(change))}: "):
        read_adapter(path)


@pytest.mark.parametrize("name", ["q.lora_embedding_A", "q.lora_magnitude_vector", "q.weight", "q.lora_A.bias"])
def test_tensors_that_are_no_a_or_b_are_refused(tmp_path: Path, name: str) -> None:
    path = adapter(tmp_path / "x", 1, "layers.0.q")
    save_file({f"{PREFIX}{name}": np.zeros((2, 2), np.float32)}, path / "adapter_model.safetensors")
    with pytest.raises(BadCheckpoint, match=rf"tensor {PREFIX}{name}: is no A or B of a linear layer"):
        read_adapter(path)


def test_a_rank_that_the_config_does_not_tell_of_is_refused(tmp_path: Path) -> None:
    path = adapter(tmp_path / "x", 1, "layers.0.q", config={"r": 3})
    with pytest.raises(BadCheckpoint, match=r"layers\.0\.q: A is \(2, 5\), B is \(6, 2\), and .* tells of rank 3"):
        read_adapter(path)
    save_file({"q.lora_A.weight": np.zeros((2, 2), np.float32)}, path / "adapter_model.safetensors")
    with pytest.raises(BadCheckpoint, match="q: has A or B, and not both"):
        read_adapter(path)


def test_a_pickled_adapter_is_refused_unopened(tmp_path: Path) -> None:
    path = adapter(tmp_path / "x", 1, "layers.0.q")
    (path / "adapter_model.safetensors").unlink()
    with pytest.raises(BadCheckpoint, match=r"has no adapter_model\.safetensors"):
        read_adapter(path)
    (path / "adapter_model.bin").write_bytes(pickle.dumps(print))
    with pytest.raises(BadCheckpoint, match=r"pickled weights alone \(adapter_model\.bin\)"):
        read_adapter(path)


def test_adapters_of_other_bases_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    low = adapter(tmp_path / "low", 1, "layers.0.q")
    monkeypatch.setitem(BASE, "layers.0.q.weight", (6, 7))
    high = adapter(tmp_path / "high", 1, "layers.0.q", "layers.0.o", config={"base_model_name_or_path": "c"})
    with pytest.raises(Differences) as raised:
        concatenate([read_adapter(low), read_adapter(high)], [of_alpha(0.5)], tmp_path / "out", Silent())
    assert raised.value.differences == (
        f"base_model_name_or_path: 'b' in {low}, 'c' in {high}",
        f"layers.0.q: adds to (6, 5) in {low}, to (6, 7) in {high}",
    )
    base = write(tmp_path / "base", tensors(3, **{"layers.0.q.weight": (6, 7)}))
    with pytest.raises(Differences) as raised, opened([high], base, [of_weights("1", 1)], tmp_path / "out"):
        pass
    assert raised.value.differences == (f"layers.0.o: {high} adds to it, and the base has no layers.0.o.weight",)
    assert not (tmp_path / "out").exists()


def test_an_adapter_of_a_tied_output_layer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be lost: loaders take the embeddings, which stay as they are."""
    held = tensors(1, **{"model.embed_tokens.weight": (6, 5)})
    held["lm_head.weight"] = held["model.embed_tokens.weight"]
    base = write(tmp_path / "base", held, CONFIG | {"tie_word_embeddings": True})
    monkeypatch.setitem(BASE, "lm_head.weight", (6, 5))
    path = adapter(tmp_path / "x", 1, "lm_head")
    with (
        pytest.raises(Differences, match=r"lm_head: .* the base has no lm_head\.weight"),
        opened([path], base, [], path),
    ):
        pass


def test_what_is_too_large_in_an_adapter_of_adapters_is_counted(tmp_path: Path) -> None:
    path = adapter(tmp_path / "x", 1, "layers.0.q")
    weights = [of_weights(text, 1, of_changes=True) for text in ("2", "1e39")]
    inside, outside = concatenate([read_adapter(path)], weights, tmp_path / "out", Silent())
    assert inside.record is not None and inside.record.not_finite == {}
    assert outside.record is not None
    assert list(outside.record.not_finite) == [f"{PREFIX}layers.0.q.lora_B.weight"]
    assert outside.record.total_not_finite == Counts(nan=0, infinite=12, overflow=12)


def test_an_adapter_that_holds_what_is_no_number_ends_the_merge(tmp_path: Path) -> None:
    path = adapter(tmp_path / "x", 1, "layers.0.q")
    held = read(path)
    held[f"{PREFIX}layers.0.q.lora_B.weight"][1, 1] = np.nan
    save_file(held, path / "adapter_model.safetensors")
    base = write(tmp_path / "base", tensors(3, **BASE))
    with (
        opened([path], base, [of_weights("1", 1)], tmp_path / "out") as plan,
        pytest.raises(NotFinite, match=r"lora_B\.weight holds 1 NaN elements"),
    ):
        merge(plan, Silent())
    for weight in ("0.5", "1"):
        with pytest.raises(NotFinite):
            concatenate([read_adapter(path)], [of_weights(weight, 1, of_changes=True)], tmp_path / "one", Silent())
    assert [one.name for one in tmp_path.glob("o*/*") if not one.name.endswith(".partial")] == []
