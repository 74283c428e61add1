"""Run by an interpreter that has TRL: writes a policy of random weights, whose words are whole answers and calls.

Reads {"folder", "words"} as JSON on stdin. Its tokenizer is one of bytes, which reads any text; `suppress.json` in the
folder has the ids of all but the words and the end of a turn, so that what it says is one of them by chance.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import trl
from byte_tokenizer import byte_tokenizer
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM


def tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    made = byte_tokenizer((Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text())
    made.add_tokens([AddedToken(word, normalized=False) for word in words])
    return made


def main() -> None:
    given = json.load(sys.stdin)
    folder, tokens = Path(given["folder"]), tokenizer(given["words"])
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokens), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=4096, tie_word_embeddings=False,
        eos_token_id=tokens.eos_token_id, pad_token_id=tokens.pad_token_id, bos_token_id=None,
    )  # fmt: skip
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokens.save_pretrained(folder)
    said = {tokens.eos_token_id, *tokens.convert_tokens_to_ids(given["words"])}
    (folder / "suppress.json").write_text(json.dumps([id for id in range(len(tokens)) if id not in said]))


main()
