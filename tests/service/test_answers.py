"""Answers of workers, which may be of another version than the engine that hears them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.engines.answers import Answer, Cancelled, Died, Failed, Refused, Vetted, from_frame, to_frame
from service.engines.base import Graded, Summary
from service.engines.frames import Frame

SUMMARY = Summary("python", "accepted", "correct", {"accepted": 2}, "hit", 0, 1, 0.1, 0.2, 0.3, 1, verdict_cached=False)
ANSWERS = [
    Graded(b"{}", SUMMARY),
    Vetted(),
    Cancelled(),
    Refused("language", "no such language"),
    Failed("it broke"),
    Died("they died"),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_what_is_said_is_heard(answer: Answer) -> None:
    assert from_frame(Frame.decode(to_frame(answer).encode())) == answer


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_what_a_newer_worker_says_beyond_that_is_passed_over(answer: Answer) -> None:
    frame = to_frame(answer)
    told = frame.fields | {"more": 1}
    if "summary" in told:
        told["summary"] = told["summary"] | {"more": 1}
    assert from_frame(replace(frame, fields=told)) == answer


@pytest.mark.parametrize(
    "frame",
    [
        Frame("result", {}, b"{}"),
        Frame("result", {"summary": {"language": "python"}}, b"{}"),
        Frame("refused", {"detail": "no reason"}),
        Frame("unheard of", {}),
    ],
    ids=lambda frame: f"{frame.kind} {frame.fields}",
)
def test_what_cannot_be_understood_is_a_fault_of_the_graders(frame: Frame) -> None:
    assert isinstance(from_frame(frame), Failed)
