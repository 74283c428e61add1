"""Run by an interpreter that has transformers, PEFT and mergekit.

`make FOLDER` writes checkpoints and adapters as these libraries do; `compare FOLDER` holds what rkgrade made of them
against what the libraries make of them, and tells it as JSON.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

ALPHAS = (-0.5, 0.0, 0.3, 0.5, 1.0, 1.5)
SIZES = {
    "vocab_size": 300, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": None, "eos_token_id": 0,
}  # fmt: skip
#: By name: the model, whether its embeddings are tied, the type of its tensors, the largest file of LOW and of HIGH.
CHECKPOINTS: dict[str, tuple[Any, bool, torch.dtype, tuple[str, str]]] = {
    "tied": (transformers.Qwen2Config, True, torch.bfloat16, ("100KB", "150KB")),
    "untied": (transformers.LlamaConfig, False, torch.float32, ("1GB", "1GB")),
    "half": (transformers.Qwen3Config, False, torch.float16, ("1GB", "100KB")),
}
ADAPTERS: dict[str, dict[str, Any]] = {
    "low": {"r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "down_proj"], "rank_pattern": {"down_proj": 8}},
    "high": {"r": 4, "lora_alpha": 3, "target_modules": ["q_proj", "v_proj"], "use_rslora": True},
}
Tensors = dict[str, torch.Tensor]


def make(folder: Path) -> None:
    words = Tokenizer(
        models.BPE({letter: number for number, letter in enumerate(pre_tokenizers.ByteLevel.alphabet())}, [])
    )
    words.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words)
    for name, (config, tied, dtype, sizes) in CHECKPOINTS.items():
        torch.manual_seed(1)
        model = AutoModelForCausalLM.from_config(config(tie_word_embeddings=tied, **SIZES), dtype=dtype)
        for side, size in zip(("low", "high", "third"), (*sizes, "1GB"), strict=True):
            model.save_pretrained(folder / name / side, max_shard_size=size)
            tokenizer.save_pretrained(folder / name / side)
            with torch.no_grad():
                for parameter in model.parameters():
                    # As after training: most elements of types with 16 bits are what they were, or all of a tensor are.
                    parameter += 0.003 * torch.randn_like(parameter) * (torch.rand_like(parameter) < 0.3)
    base = AutoModelForCausalLM.from_pretrained(folder / "untied" / "low")
    on_grid(base, 2**-8)
    base.save_pretrained(folder / "base")
    base.to(torch.bfloat16).save_pretrained(folder / "base-bf16")
    for side, told in ADAPTERS.items():
        base = AutoModelForCausalLM.from_pretrained(folder / "base")
        adapted = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **told))
        on_grid(adapted, 2**-3, "lora_")
        adapted.save_pretrained(folder / "adapters" / side)


def on_grid(model: torch.nn.Module, step: float, within: str = "") -> None:
    """Small multiples of `step`: sums of products of such are exact in fp32, in whatever order they are added."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if within in name:
                parameter.copy_(torch.randint(-8, 9, parameter.shape) * step)


def compare(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name in CHECKPOINTS:
        inputs = [folder / name / side for side in ("low", "high")]
        for alpha in ALPHAS:
            found = folder / name / f"alpha={alpha:g}"
            told[f"{name} {alpha:g}"] = loading(found) | unlike(found, inputs, (1 - alpha, alpha))
        weights = (0.5, 0.75, -0.25)
        found = folder / name / ("weights=" + ",".join(map(str, weights)))
        told[f"{name} weights"] = loading(found) | unlike(found, [*inputs, folder / name / "third"], weights)
    return told | {f"adapters {alpha:g}": of_adapters(folder, alpha) for alpha in (-0.5, 1.5)}


def loading(path: Path) -> dict[str, Any]:
    """What transformers finds amiss, and whether it computes with it."""
    model, found = AutoModelForCausalLM.from_pretrained(path, output_loading_info=True)
    ids = AutoTokenizer.from_pretrained(path)("print(1)", return_tensors="pt").input_ids
    with torch.no_grad():
        computes = bool(model(ids).logits.isfinite().all())
    return {what: sorted(names) for what, names in found.items() if names} | {"computes": computes}


def unlike(found: Path, inputs: Sequence[Path], weights: Sequence[float]) -> dict[str, Any]:
    """Elements that are not mergekit's, and those that no rounding of a product to fp32, of a sum, or of it to the type
    can have brought so far.
    """
    from mergekit.config import MergeConfiguration
    from mergekit.merge import run_merge
    from mergekit.options import MergeOptions

    listed = [
        {"model": str(path), "parameters": {"weight": weight}} for path, weight in zip(inputs, weights, strict=True)
    ]
    config = MergeConfiguration.model_validate(
        {
            "merge_method": "linear",
            "models": listed,
            "parameters": {"normalize": False},
            "dtype": str(tensors(inputs[0])["model.norm.weight"].dtype).removeprefix("torch."),
        }
    )
    out = found.with_name(f"mergekit-{found.name}")
    run_merge(config, str(out), MergeOptions(quiet=True, copy_tokenizer=False))
    ours, theirs, originals = tensors(found), tensors(out), [tensors(path) for path in inputs]
    differ = far = 0
    for name in ours.keys() & theirs.keys():
        one, other, first = ours[name], theirs[name], originals[0][name]
        assert one.dtype == other.dtype == first.dtype
        kept = torch.stack([held[name] == first for held in originals]).all(0)
        if one.dtype == torch.float32:
            # What is the same in all stays so in ours; its sum in fp32, which mergekit takes, may be another number.
            far += int((kept & (one != first)).sum())
        else:
            kept = torch.zeros_like(kept)
        differ += int((~kept & (one != other)).sum())
        apart = (one.double() - other.double()).abs()
        products = sum(abs(weight) * held[name].double().abs() for weight, held in zip(weights, originals, strict=True))
        unit = 0 if one.dtype == torch.float32 else torch.finfo(one.dtype).eps
        far += int((~kept & (apart > 2**-22 * products + unit * other.double().abs())).sum())
    return {"only one has": sorted(ours.keys() ^ theirs.keys()), "differ": differ, "far": far}


def of_adapters(folder: Path, alpha: float) -> dict[str, int]:
    """Elements that are not the same bits as PEFT's."""
    both = [folder / "adapters" / side for side in ("low", "high")]
    expected = merged(folder, both, alpha)
    found = {
        "applied": tensors(folder / "applied" / "base" / f"alpha={alpha:g}"),
        "concatenated": merged(folder, [folder / "concatenated" / f"alpha={alpha:g}"], None),
    }
    counts = {what: differing(expected, one) for what, one in found.items()}
    rounded = {name: one.to(torch.bfloat16) for name, one in expected.items()}
    counts["applied to bf16"] = differing(rounded, tensors(folder / "applied" / "base-bf16" / f"alpha={alpha:g}"))
    return counts | {"changed": differing(expected, tensors(folder / "base"))}


def merged(folder: Path, adapters: Sequence[Path], alpha: float | None) -> Tensors:
    """What PEFT makes of the base, in fp32."""
    base = AutoModelForCausalLM.from_pretrained(folder / "base", dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, adapters[0], adapter_name="first")
    if alpha is not None:
        adapted.load_adapter(adapters[1], adapter_name="second")
        adapted.add_weighted_adapter(["first", "second"], [1 - alpha, alpha], "sum", combination_type="cat")
        adapted.set_adapter("sum")
    chosen = ["sum"] if alpha is not None else ["first"]
    return dict(adapted.merge_and_unload(adapter_names=chosen).state_dict())


def differing(one: Tensors, other: Tensors) -> int:
    assert one.keys() == other.keys(), one.keys() ^ other.keys()
    assert all(held.dtype == other[name].dtype for name, held in one.items())
    return sum(int((held != other[name]).sum()) for name, held in one.items())


def tensors(path: Path) -> Tensors:
    return {name: one for file in sorted(path.glob("*.safetensors")) for name, one in load_file(file).items()}


def main() -> None:
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "make":
        make(folder)
    else:
        print(json.dumps(compare(folder)))


main()
