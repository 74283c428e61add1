"""What OpenRLHF 0.11 says and wants to hear, for both ways to it: the reward file, and `POST /openrlhf/reward`."""

from __future__ import annotations

import re

from rl_client.errors import ClientError
from rl_client.labels import THINK
from rl_client.rollout import Scored

#: The last of what tokenizers end a text with, which is shown to a reward function as it is.
_LAST = re.compile(r"(?:<\|[^<>|\s]{1,40}\|>|<｜[^<>｜\s]{1,40}｜>|</s>|<eos>|<pad>|<end_of_turn>|\s+)\Z")
#: Characters of the longest; to look for them all at once takes quadratic time, of which a model may cost us minutes.
_LONGEST = 44

#: Of a prompt that was cut at its beginning so much at least is left, and tells where the answer begins.
_LEAST_TAIL = 16


def answer_of(query: str, prompt: str) -> str:
    """The policy's own text in a query, without the tokens that end it; with the `<think>` that the prompt ends in.

    A prompt that was too long was cut at its beginning; its end is looked for then, the longest part of it first.
    Raises ClientError where it is not there: to take the whole for the answer would reward the prompt's own code.
    """
    begin = len(prompt) if query.startswith(prompt) else None
    length = len(prompt)
    while begin is None and (length := length // 2) >= _LEAST_TAIL:
        at = query.find(prompt[-length:])
        begin = at + length if at >= 0 else None
    if begin is None:
        raise ClientError("the prompt is not in the query, so nothing tells where the answer begins")
    return thought(prompt, without_end(query[begin:]))


def thought(before: str, text: str) -> str:
    """A turn with the `<think>` that opens it where its prompt holds that, as templates of reasoning models have it: of
    one that is cut off in its thoughts a draft would be taken for the answer else.
    """
    return f"{THINK}{text}" if before.rstrip().endswith(THINK) else text


def without_end(text: str) -> str:
    """A turn without the tokens that end it; a fence that has one behind it in its last line is not closed."""
    end = len(text)
    while (match := _LAST.search(text, max(0, end - _LONGEST), end)) is not None:
        end = match.start()
    return text[:end]


def score_of(scored: Scored, reward: float) -> float:
    """From 0 to 1, for dynamic sampling, which keeps groups with a mean score between. Where there is nothing to
    measure it is `reward`, and what a label says of such a case can lie outside: then the nearer end.
    """
    measure = scored.label.measure()
    value = measure(scored.result)
    if value is None:
        value = reward
    elif measure.is_signed:
        value = (1 + value) / 2
    return min(1.0, max(0.0, value))
