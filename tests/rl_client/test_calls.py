"""Calls of tools out of a model's text."""

from __future__ import annotations

import time

import pytest

from rl_client.calls import Call, calls_of, without_calls
from rl_client.sendable import sendable


def test_a_call_by_its_name_holds_its_body() -> None:
    text = "Let me see.\n<tool: python>\nprint(1)\n\nprint(2)\n</tool>\n"
    assert calls_of(text) == [Call("python", "print(1)\n\nprint(2)")]
    assert calls_of(text)[0].text("code") == "print(1)\n\nprint(2)"


def test_a_call_as_json_holds_its_arguments() -> None:
    text = '<tool_call>\n{"name": "python", "arguments": {"code": "print(1)"}}\n</tool_call><|im_end|>'
    (call,) = calls_of(text)
    assert (call.name, call.text("code"), call.text("command")) == ("python", "print(1)", None)


def test_several_calls_stand_in_order() -> None:
    text = '<tool: bash>ls</tool>\n<tool_call>{"name": "submit"}</tool_call>'
    assert [call.name for call in calls_of(text)] == ["bash", "submit"]


@pytest.mark.parametrize(
    ("body", "mistake"),
    [
        ("print(1)", "the call is not JSON"),
        ("[1]", 'a call is a JSON object with "name" and "arguments"'),
        ('{"name": 3}', 'a call is a JSON object with "name" and "arguments"'),
        ('{"name": "python", "arguments": "print(1)"}', '"arguments" is a JSON object'),
        ("[" * 100_000, "the call is not JSON"),
    ],
)
def test_what_is_wrong_with_a_call_is_said(body: str, mistake: str) -> None:
    (call,) = calls_of(f"<tool_call>{body}</tool_call>")
    assert call.mistake is not None
    assert call.mistake.startswith(mistake)


def test_a_call_that_was_cut_off_is_none() -> None:
    assert [call.mistake for call in calls_of("<tool: python>\nprint(")] == ["the call is not closed by </tool>"]


@pytest.mark.parametrize(
    "text",
    [
        "<think>\n<tool: python>print(1)</tool>\n",
        "<think><tool: python>print(1)</tool></think> 42",
        "```python\nprint(1)\n```",
        "<tool:python",
        "",
    ],
)
def test_no_call(text: str) -> None:
    assert calls_of(text) == []
    assert without_calls(text) == text


def test_an_argument_that_is_no_text_is_none() -> None:
    (call,) = calls_of('<tool_call>{"name": "python", "arguments": {"code": 3}}</tool_call>')
    assert call.text("code") is None


def test_what_a_call_holds_is_no_answer() -> None:
    text = "a <tool: python>```python\nprint(1)\n```</tool> b <tool_call>{}</tool_call> c <tool: x>"
    assert without_calls(text) == "a  b  c "


@pytest.mark.parametrize("piece", ["<tool: python>", "<tool_call>", "<tool: a></tool>", "<tool: ", "</tool>"])
def test_long_texts_take_linear_time(piece: str) -> None:
    begun = time.process_time()
    calls_of(piece * 100_000)
    assert time.process_time() - begun < 5


def test_half_a_surrogate_pair_can_be_sent() -> None:
    assert sendable("a\ud800é") == "a?é"
    sendable("a\ud800é").encode()
