"""Merges of small checkpoints, as the library of the format reads them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from rl_client.merge import opening
from rl_client.merge.arithmetic import PIECE, Counts
from rl_client.merge.errors import BadCheckpoint, NotFinite
from rl_client.merge.opening import opened
from rl_client.merge.preflight import compare
from rl_client.merge.recipes import of_weights
from rl_client.merge.records import MergeRecord
from rl_client.merge.run import merge
from tests.rl_client.merge.checkpoints import BF16, CONFIG, Silent, as_bytes, average, read, tensors, write


def record(folder: Path) -> MergeRecord:
    return MergeRecord.model_validate_json((folder / "merge.json").read_bytes())


def test_several_alphas_in_one_pass_are_what_each_is_alone(tmp_path: Path) -> None:
    held = tensors(2)
    low = write(tmp_path / "low", tensors(1))
    high = write(tmp_path / "high", [{"norm": held["norm"]}, {k: v for k, v in held.items() if k != "norm"}])
    alphas = (-0.5, 0, 0.3, 1, 1.5)
    watcher = Silent()
    average(tmp_path / "out", [low, high], *alphas, watcher=watcher)
    for alpha in alphas:
        folder = tmp_path / "out" / f"alpha={alpha}"
        average(tmp_path / "alone", [low, high], alpha)
        assert as_bytes(read(folder)) == as_bytes(read(tmp_path / "alone" / folder.name))
        wide = {
            name: np.float32(alpha) * held[name].astype(np.float32) + np.float32(1 - alpha) * one.astype(np.float32)
            for name, one in tensors(1).items()
        }
        assert as_bytes(read(folder)) == as_bytes({name: one.astype(BF16) for name, one in wide.items()})
    assert as_bytes(read(tmp_path / "out/alpha=0")) == as_bytes(tensors(1))
    assert as_bytes(read(tmp_path / "out/alpha=1")) == as_bytes(held)
    assert watcher.done == watcher.total == 5 * sum(one.nbytes for one in held.values())


def test_the_files_are_laid_out_as_the_last_checkpoint(tmp_path: Path) -> None:
    held = tensors(2)
    low = write(tmp_path / "low", tensors(1))
    high = write(
        tmp_path / "high",
        [{"norm": held.pop("norm")}, held],
        CONFIG | {"torch_dtype": "bfloat16"},
        tokenizer__json="{}",
        chat_template__jinja="x",
        trainer_state__json="{}",
        README__md="another model",
        optimizer__pt=b"x",
    )
    (output,) = average(tmp_path / "out", [low, high], 0.5)
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    others = ["README.md", "chat_template.jinja", "config.json", "merge.json", "model.safetensors.index.json"]
    assert sorted(one.name for one in output.path.iterdir()) == sorted([*names, *others, "tokenizer.json"])
    index = json.loads((output.path / "model.safetensors.index.json").read_text())
    assert index["weight_map"] == {"norm": names[0]} | dict.fromkeys(held, names[1])
    assert index["metadata"] == {"total_size": sum(one.nbytes for one in tensors(2).values())}
    assert (output.path / "config.json").read_bytes() == (high / "config.json").read_bytes()
    assert list((tmp_path / "out").iterdir()) == [output.path]


def test_it_says_where_it_comes_from(tmp_path: Path) -> None:
    low, high = write(tmp_path / "low", tensors(1)), write(tmp_path / "high", tensors(2))
    (output,) = average(tmp_path / "out", [low, high], -0.5)
    told = record(output.path)
    assert (told.alpha, told.weights, told.tensors, told.parameters) == (-0.5, (1.5, -0.5), 5, 88 + 64 + 8 + 8 + 1)
    assert [one.path for one in told.inputs] == [str(low), str(high)]
    for folder, files in [(low, told.inputs[0].files), (high, told.inputs[1].files), (output.path, told.outputs)]:
        held = {name: (one.bytes, one.sha256) for name, one in files.items()}
        content = (folder / "model.safetensors").read_bytes()
        assert held == {"model.safetensors": (len(content), hashlib.sha256(content).hexdigest())}
    with safe_open(output.path / "model.safetensors", "np") as opened:
        metadata = opened.metadata()
    assert metadata == {
        "format": "pt",
        "rkgrade": told.rkgrade,
        "formula": told.formula,
        "inputs": '["low", "high"]',
        "weights": "[1.5, -0.5]",
        "alpha": "-0.5",
    }
    card = (output.path / "README.md").read_text()
    assert 'base_model:\n- "low"\n- "high"\n' in card
    assert f"| high | -0.5 | `model.safetensors` | `{told.inputs[1].files['model.safetensors'].sha256}` |" in card


def test_a_folder_of_any_name_is_one_row_of_the_card(tmp_path: Path) -> None:
    pair_ = [write(tmp_path / name, tensors(seed)) for seed, name in enumerate(("low|1\nst", "high"))]
    card = (average(tmp_path / "out", pair_, 0.5)[0].path / "README.md").read_text()
    assert "| low\\|1 st | 0.5 | `model.safetensors` |" in card


def test_changes_are_told_by_tensor(tmp_path: Path) -> None:
    one = {name: held.astype(np.float32) for name, held in tensors(1).items()}
    other = {name: held.copy() for name, held in one.items()}
    other["embed"][0] += 1
    low, high = write(tmp_path / "low", one), write(tmp_path / "high", other)
    (output,) = average(tmp_path / "out", [low, high], 0.5)
    changes = record(output.path).changes
    assert {name: change.unchanged for name, change in changes.items()} == dict.fromkeys(one, (1,)) | {
        "embed": (10 / 11,)
    }
    expected = float(np.linalg.norm(other["embed"] - one["embed"]) / np.linalg.norm(one["embed"]))
    assert changes["embed"].relative[0] == pytest.approx(expected, rel=1e-5)
    assert changes["q.weight"].relative == (0,)


def test_tensors_of_many_pieces_are_whole(tmp_path: Path) -> None:
    shapes = {"big": (3, PIECE // 2 + 7), "empty": (0, 5), "small": (3,)}
    one, other = tensors(1, **shapes), tensors(2, **shapes)
    other["big"][2] = one["big"][2]
    low, high = write(tmp_path / "low", one), write(tmp_path / "high", other)
    (output,) = average(tmp_path / "out", [low, high], 1.5)
    wide = {k: np.float32(1.5) * other[k].astype(np.float32) - np.float32(0.5) * one[k].astype(np.float32) for k in one}
    assert as_bytes(read(output.path)) == as_bytes({name: held.astype(BF16) for name, held in wide.items()})
    changes = record(output.path).changes
    assert sorted(changes) == ["big", "small"]
    same = (one["big"].view(np.uint16) == other["big"].view(np.uint16)).mean()
    assert changes["big"].unchanged == (pytest.approx(same),)


def test_any_number_of_checkpoints_by_weights(tmp_path: Path) -> None:
    paths = [write(tmp_path / str(seed), tensors(seed, np.float32)) for seed in range(3)]
    recipes = [of_weights("0.5,0.75,-0.25", 3), of_weights("0,1,0", 3)]
    with opened(paths, None, recipes, tmp_path / "out") as made:
        outputs = merge(made, Silent())
    wide = {
        name: np.float32(0.5) * one + np.float32(0.75) * tensors(1, np.float32)[name] - np.float32(0.25) * last
        for (name, one), last in zip(tensors(0, np.float32).items(), tensors(2, np.float32).values(), strict=True)
    }
    assert as_bytes(read(outputs[0].path)) == as_bytes(wide)
    assert as_bytes(read(outputs[1].path)) == as_bytes(tensors(1, np.float32))
    assert len(record(outputs[0].path).changes["norm"].relative) == 2


def test_tensors_that_are_no_floats_are_copied(tmp_path: Path) -> None:
    more = {"ids": np.arange(9), "mask": np.array([True, False])}
    low, high = write(tmp_path / "low", tensors(1) | more), write(tmp_path / "high", tensors(2) | more)
    (output,) = average(tmp_path / "out", [low, high], -0.5)
    found = read(output.path)
    assert as_bytes({name: found[name] for name in more}) == as_bytes(more)
    assert not set(more) & set(record(output.path).changes)


def test_a_tied_output_layer_is_not_written(tmp_path: Path) -> None:
    one = tensors(1, **{"model.embed_tokens.weight": (11, 8)})
    config = CONFIG | {"tie_word_embeddings": True}
    low = write(tmp_path / "low", one, config)
    high = write(tmp_path / "high", one | {"lm_head.weight": one["model.embed_tokens.weight"]}, config)
    (output,) = average(tmp_path / "out", [low, high], 0.5)
    assert list(read(output.path)) == ["model.embed_tokens.weight"]
    assert record(output.path).left_out == ("lm_head.weight",)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_checkpoint_that_holds_what_is_no_number_ends_the_merge(tmp_path: Path, bad: float) -> None:
    other = tensors(2)
    other["q.weight"][3, 3] = bad
    low, high = write(tmp_path / "low", tensors(1)), write(tmp_path / "high", other)
    kind = "NaN" if np.isnan(bad) else "infinite"
    with pytest.raises(NotFinite, match=rf"high: tensor q\.weight holds 1 {kind} elements"):
        average(tmp_path / "out", [low, high], 0.5)
    assert not (tmp_path / "out/alpha=0.5").exists()
    (output,) = average(tmp_path / "counted", [low, high], 0.5, takes_not_finite=True)
    counts = record(output.path).total_not_finite
    assert (counts.nan, counts.infinite, counts.overflow) == (int(np.isnan(bad)), int(np.isinf(bad)), 0)
    assert record(output.path).changes["q.weight"].relative == (None,)


def test_infinities_that_are_the_same_in_all_stay(tmp_path: Path) -> None:
    mask = np.array([0.5, -np.inf, np.nan], BF16)
    low = write(tmp_path / "low", {"mask": mask, "x": np.ones(3, BF16)})
    high = write(tmp_path / "high", {"mask": np.array([0.25, -np.inf, np.nan], BF16), "x": np.zeros(3, BF16)})
    (output,) = average(tmp_path / "out", [low, high], 1.5, takes_not_finite=True)
    assert read(output.path)["mask"].tobytes() == np.array([0.125, -np.inf, np.nan], BF16).tobytes()
    assert output.record is not None
    assert output.record.total_not_finite == Counts(nan=1, infinite=1, overflow=0)


def test_overflow_is_counted_for_each_alpha(tmp_path: Path) -> None:
    one, other = tensors(1, np.float16), tensors(2, np.float16)
    one["norm"][:2], other["norm"][:2] = -60000, 60000
    low, high = write(tmp_path / "low", one), write(tmp_path / "high", other)
    # The last is infinite in fp32.
    inside, outside, far = average(tmp_path / "out", [low, high], 0.5, 1.5, 1e39)
    assert record(inside.path).not_finite == {}
    (counts,) = record(outside.path).not_finite.values()
    assert (counts.nan, counts.infinite, counts.overflow) == (0, 2, 2)
    assert record(far.path).not_finite.keys() >= {"norm"}


PEAK = """
import os
import sys
from pathlib import Path
from rl_client.merge.opening import opened
from rl_client.merge.recipes import of_weights
from rl_client.merge.run import merge
from tests.rl_client.merge.checkpoints import Silent
cores, out, *paths = sys.argv[1:]
os.sched_getaffinity = lambda pid: set(range(int(cores)))
sums = [[0.5 + number, *[0.0] * (len(paths) - 2), 0.5 - number] for number in range(2 if cores == "2" else 18)]
recipes = [of_weights(",".join(map(str, one)), len(paths)) for one in sums]
with opened([Path(one) for one in paths], None, recipes, Path(out)) as plan:
    merge(plan, Silent())
# Not getrusage's, which begins with what the parent had.
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


def peak_kib(paths: Sequence[Path], out: Path, cores: int) -> int:
    command = [sys.executable, "-c", PEAK, str(cores), str(out), *map(str, paths)]
    return int(
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]).stdout
    )


def test_memory_does_not_grow_with_the_model(tmp_path: Path) -> None:
    peaks_kib = []
    # The small one fills all buffers, too; parts of the large one are brought to the disk while the rest is made.
    for name, millions in (("small", 8), ("large", 40)):
        shapes = {"one": (millions, 500_000), "other": (500_000, millions)}
        held = {key: np.full(shape, 0.5, BF16) for key, shape in shapes.items()}
        low = write(tmp_path / name / "low", held)
        high = write(tmp_path / name / "high", {key: one + one for key, one in held.items()})
        peaks_kib.append(peak_kib([low, high], tmp_path / name / "out", cores=2))
    small, large = peaks_kib
    assert large < small + 16 * 1024, peaks_kib
    assert large < 150 * 1024


@pytest.mark.parametrize("count", [2, 8])
def test_memory_does_not_grow_with_checkpoints_types_and_cores(tmp_path: Path, count: int) -> None:
    held = [{"one": np.full(2_000_000, number, np.float64)} for number in range(count)]
    paths = [write(tmp_path / str(number), one) for number, one in enumerate(held)]
    assert peak_kib(paths, tmp_path / "out", cores=64) < 150 * 1024


def test_a_checkpoint_changed_in_between_does_not_pass(tmp_path: Path) -> None:
    low, high = write(tmp_path / "low", tensors(1)), write(tmp_path / "high", tensors(2))

    class Changing(Silent):
        def advanced(self, done_bytes: int) -> None:
            super().advanced(done_bytes)
            (low / "model.safetensors").touch()

    with pytest.raises(BadCheckpoint, match=r"low/model\.safetensors: was changed while it was read"):
        average(tmp_path / "out", [low, high], 0.5, watcher=Changing())
    assert not (tmp_path / "out/alpha=0.5").exists()


def test_a_checkpoint_that_shrinks_in_between_does_not_pass(tmp_path: Path) -> None:
    low, high = write(tmp_path / "low", tensors(1)), write(tmp_path / "high", tensors(2))

    class Shrinking(Silent):
        def planned(self, total_bytes: int) -> None:
            with (low / "model.safetensors").open("r+b") as file:
                file.truncate(500)

    with pytest.raises(BadCheckpoint, match="ends within tensor"):
        average(tmp_path / "out", [low, high], 0.5, watcher=Shrinking())
    assert not (tmp_path / "out/alpha=0.5").exists()


def test_a_checkpoint_changed_while_it_is_compared_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    low, high = write(tmp_path / "low", tensors(1)), write(tmp_path / "high", tensors(2))

    def comparing(*compared: Any) -> frozenset[str]:
        (low / "model.safetensors").touch()
        return compare(*compared)

    monkeypatch.setattr(opening, "compare", comparing)
    with pytest.raises(BadCheckpoint, match=r"low/model\.safetensors: was changed while it was read"):
        average(tmp_path / "out", [low, high], 0.5)
    assert not (tmp_path / "out").exists()


def test_a_config_changed_in_between_does_not_pass(tmp_path: Path) -> None:
    low, high = write(tmp_path / "low", tensors(1)), write(tmp_path / "high", tensors(2))

    class Changing(Silent):
        def advanced(self, done_bytes: int) -> None:
            super().advanced(done_bytes)
            (high / "config.json").write_text("{}")

    with pytest.raises(BadCheckpoint, match=r"high/config\.json: was changed while it was read"):
        average(tmp_path / "out", [low, high], 0.5, watcher=Changing())
    assert not (tmp_path / "out/alpha=0.5").exists()


def test_files_take_no_descriptor_each(tmp_path: Path) -> None:
    paths = []
    for seed, name in ((1, "low"), (2, "high")):
        files = [tensors(100 * seed + number, weight=(3,)) for number in range(40)]
        named = [{f"{key}.{number}": held for key, held in one.items()} for number, one in enumerate(files)]
        paths.append(write(tmp_path / name, named))

    class Counting(Silent):
        most = 0

        def advanced(self, done_bytes: int) -> None:
            self.most = max(self.most, len(list(Path("/proc/self/fd").iterdir())))

    before, watcher = len(list(Path("/proc/self/fd").iterdir())), Counting()
    average(tmp_path / "out", paths, 0.5, watcher=watcher)
    assert watcher.most <= before + 10


@pytest.mark.parametrize(("backwards", "times"), [(False, 1), (True, 2)])
def test_files_are_hashed_by_what_is_read_of_them_anyway(tmp_path: Path, backwards: bool, times: int) -> None:
    """The second lies in files of its own. Where its order is another, no file is read more than twice."""
    shapes = {f"layer.{number}": (500, 1000) for number in range(4)}
    second = list(tensors(2, **shapes).items())
    high = [{name: one} for name, one in (reversed(second) if backwards else second)]
    paths = [write(tmp_path / "low", tensors(1, **shapes)), write(tmp_path / "high", high)]
    files = [file for path in paths for file in path.glob("*.safetensors")]
    before = read_bytes()
    (output,) = average(tmp_path / "out", paths, 0.25)
    read = read_bytes() - before
    assert output.record is not None
    told = {(source.path, name): one.sha256 for source in output.record.inputs for name, one in source.files.items()}
    assert told == {(str(one.parent), one.name): hashlib.sha256(one.read_bytes()).hexdigest() for one in files}
    assert read < (times + 0.1) * sum(file.stat().st_size for file in files)


def read_bytes() -> int:
    """That this process has read so far, of files and whatever else."""
    return int(Path("/proc/self/io").read_text().split()[1])
