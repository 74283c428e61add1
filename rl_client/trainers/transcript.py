"""The tokens of a rollout of several turns: which the model said, with which probability, and which it heard.

Token in, token out: what the model said goes back to it, and to the trainer, as the very tokens that it sampled; a
text that is tokenized anew can come to others. Only what is heard is tokenized here, by itself. Knows no trainer: a
tokenizer is whatever `transformers` has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Transcript:
    """Prompt, turns and what was heard between them, as one sequence."""

    tokens: list[int]
    most: int
    """Tokens that there may be."""
    log_probs: list[float] | None = None
    """One for each token: of the model's own as they were sampled, 0.0 of all others. None where nobody asked."""
    actions: list[tuple[int, int]] = field(default_factory=list)
    """Where the model's own tokens begin and end; all others are left out of the loss."""

    @property
    def room(self) -> int:
        """Tokens that still fit in."""
        return self.most - len(self.tokens)

    def say(self, tokens: Sequence[int], log_probs: Sequence[float] | None) -> None:
        """A turn of the model's. Raises ValueError where it and its probabilities differ in length, or lack them."""
        if self.log_probs is not None:
            if log_probs is None or len(log_probs) != len(tokens):
                raise ValueError(f"{len(tokens)} tokens, and {len(log_probs or ())} log probabilities")
            self.log_probs.extend(log_probs)
        begin = len(self.tokens)
        self.tokens.extend(tokens)
        self.actions.append((begin, len(self.tokens)))

    def hear(self, tokens: Sequence[int]) -> None:
        """What the model is told."""
        self.tokens.extend(tokens)
        if self.log_probs is not None:
            self.log_probs.extend([0.0] * len(tokens))


#: Stand for a turn's text and for what is heard while a template is asked for what it puts around them.
_SAID, _HEARD = "RkgradeSaidThis", "RkgradeHeardThis"


class Chat:
    """How a model is told something after its turn: as its tokenizer's chat template has it, else as plain lines."""

    def __init__(self, tokenizer: Any, role: str) -> None:
        """`role`: whose words it hears, such as `tool`; `user` where the template knows no such role."""
        self._tokenizer = tokenizer
        self._around = self._of_template(role) or self._of_template("user") or ("\n", "\n")
        # Not those alone that have a role, as the end of a turn does: most of Llama 3's are in no list of them.
        self._marks = {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()} - {""}
        self._mark = re.compile("|".join(map(re.escape, self._marks)) or r"(?!)")

    def heard(self, text: str, last: int | None) -> list[int]:
        """The tokens of it, from the end of the model's turn to where its next one begins. `last`: that turn's last
        token, since the template's mark for the end of a turn is not said twice.
        """
        before, after = self._around
        if last is not None and (ended := self._tokenizer.decode([last])) in self._marks:
            before = before.removeprefix(ended)
        if self._mark.search(text) is None:
            return self._tokens(before + text + after)
        # A program could print the marks of a turn, and have it pass for somebody else's: each is torn apart.
        torn, begin = [], 0
        while (mark := self._mark.search(text, begin)) is not None:
            torn.append(text[begin : mark.start() + 1])
            begin = mark.start() + 1
        return [token for piece in (before, *torn, text[begin:], after) for token in self._tokens(piece)]

    def _tokens(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _of_template(self, role: str) -> tuple[str, str] | None:
        if not getattr(self._tokenizer, "chat_template", None):
            return None
        turns = [
            {"role": "user", "content": "."},
            {"role": "assistant", "content": _SAID},
            {"role": role, "content": _HEARD},
        ]
        try:
            rendered = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except Exception:  # noqa: BLE001 - templates raise whatever they like at roles that they do not know
            return None
        _, said, rest = rendered.rpartition(_SAID)
        before, heard, after = rest.partition(_HEARD)
        return (before, after) if said and heard else None
