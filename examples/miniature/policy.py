"""A policy of random weights with a tokenizer that is learned from the programs it is to be trained on."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END, PAD = "<|end|>", "<|pad|>"

#: Tokens do not reach across the ends of lines, and every digit is one by itself.
_PIECES = Regex(r"```[a-z]*| ?\d|\n *| ?[^\s\d`]+| +")


def new_policy(
    folder: Path, examples: Path, *, seed: int, vocabulary: int, width: int, layers: int, spread: float
) -> int:
    """Write it; the number of its parameters, which are drawn with the standard deviation `spread`."""
    rows = [json.loads(line) for line in examples.read_text().splitlines()[:2000]]
    tokenizer = _tokenizer([row["prompt"] + row["completion"] for row in rows], vocabulary)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=width, intermediate_size=width * 8 // 3 // 32 * 32,
            num_hidden_layers=layers, num_attention_heads=width // 32, num_key_value_heads=width // 32,
            max_position_embeddings=512, tie_word_embeddings=True, initializer_range=spread,
            bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip
    part = folder.with_suffix(".part")
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    part.rename(folder)
    return sum(one.numel() for one in model.parameters())


def _tokenizer(texts: list[str], vocabulary: int) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_PIECES, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=[PAD, END],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=PAD, padding_side="left")
