"""Which part of a model's text is the program, policy by policy."""

from __future__ import annotations

import time

import pytest

from service.contract import Extraction
from service.extraction import extract

PYTHON = frozenset({"python", "python3", "py"})
CPP = frozenset({"cpp", "c++", "cpp17", "c++17"})
POLICIES: tuple[Extraction, ...] = ("last_fence", "first_fence", "only_fence", "tagged", "lcb")
FENCED: tuple[Extraction, ...] = ("last_fence", "first_fence", "only_fence", "tagged")


def by_policy(text: str, names: frozenset[str] = PYTHON) -> dict[str, str | None]:
    return {policy: extract(text, policy, names) for policy in POLICIES}


def only(text: str) -> str | None:
    return extract(text, "only_fence", PYTHON)


def test_one_fence_is_the_program_by_every_policy() -> None:
    assert by_policy("Here:\n```python\nprint(1)\nprint(2)\n```\nDone.") == {
        "last_fence": "print(1)\nprint(2)\n",
        "first_fence": "print(1)\nprint(2)\n",
        "only_fence": "print(1)\nprint(2)\n",
        "tagged": "print(1)\nprint(2)\n",
        "lcb": "print(1)\nprint(2)",
    }


def test_a_draft_a_solution_and_a_sample_output_tell_the_policies_apart() -> None:
    text = "```python\ndraft\n```\nBetter:\n```py\nfinal\n```\nIt prints\n```text\n42\n```\n"

    assert by_policy(text) == {
        "last_fence": "42\n",
        "first_fence": "draft\n",
        "only_fence": None,
        "tagged": "final\n",
        "lcb": "42",
    }


@pytest.mark.parametrize("text", ["", "print(1)", "use `x` or ``y``", "```", "```python", "```python\n", "~~~~\n~~~"])
def test_a_text_without_a_fenced_program_has_none(text: str) -> None:
    assert by_policy(text) == dict.fromkeys(POLICIES)


# Fences as CommonMark has them


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("~~~\ncode\n~~~", "code\n"),
        ("~~~python\ncode\n~~~~~", "code\n"),
        ("`````\ncode\n`````", "code\n"),
        ("````md\n```\ncode\n```\n````", "```\ncode\n```\n"),
        ("~~~\n```\ncode\n```\n~~~", "```\ncode\n```\n"),
        ("```\n~~~\n```", "~~~\n"),
        ("```\ncode\n``` \t", "code\n"),
        ("```\ncode\n   ```", "code\n"),
        ("```\ncode\n    ```\n```", "code\n    ```\n"),
        ("```\ncode\n``` not a close\n```", "code\n``` not a close\n"),
        ("```\nx ```\n```", "x ```\n"),
        ("```\n\n  code\n\n```", "\n  code\n\n"),
        ('```cpp title="x" {1,3}\ncode\n```', "code\n"),
        ("~~~ info with ``` and ~~~\ncode\n~~~", "code\n"),
        ("```x``` is inline\n```\ncode\n```", "code\n"),
    ],
)
def test_what_opens_and_closes_a_fence(text: str, program: str) -> None:
    assert only(text) == program


@pytest.mark.parametrize(
    "text",
    [
        "    ```\ncode\n    ```",
        "\t```\ncode\n\t```",
        "code: ```\ncode\n```x",
        "``\ncode\n``",
        "``` a`b\ncode\n~~~",
        "~~\ncode\n~~",
    ],
)
def test_what_is_no_fence(text: str) -> None:
    assert only(text) is None


def test_an_indented_fence_takes_its_indentation_off_every_line_that_has_it() -> None:
    assert only("   ```python\n   if x:\n       y\n  z\nw\n\n   ```") == "if x:\n    y\nz\nw\n\n"
    assert only("  ```\r\n  a\r\n   b\r\n  ```") == "a\r\n b\r\n"
    assert only("```\n  a\n  ```") == "  a\n"


def test_line_ends_of_any_kind_end_lines_and_stay_as_they_are() -> None:
    assert only("```python\r\na\r\nb\r\n```\r\n") == "a\r\nb\r\n"
    assert only("```python\ra\r```") == "a\r"
    assert only("```\na\x0b```\n\u2028```\n```") == "a\x0b```\n\u2028```\n"


def test_backticks_inside_code_are_code_unless_they_stand_alone_on_a_line() -> None:
    assert only("```python\nprint('```')\ns = '''```\n'''\n```") == "print('```')\ns = '''```\n'''\n"


def test_a_bare_fence_line_inside_code_ends_it_and_a_longer_fence_prevents_that() -> None:
    inner = 's = """\n```\n"""\nprint(s)\n'

    assert only(f"```python\n{inner}```") == 's = """\n'
    assert only(f"````python\n{inner}````") == inner


# What is no program


def test_an_unclosed_fence_was_cut_off_and_is_never_a_program_nor_is_the_draft_before_it() -> None:
    assert by_policy("```python\nprint(1)\n") | {"lcb": None} == dict.fromkeys(POLICIES)
    assert by_policy("```python\ndraft\n```\nBetter:\n```python\nfinal = so") == {
        "last_fence": None,
        "first_fence": "draft\n",
        "only_fence": None,
        "tagged": None,
        "lcb": "Better:",
    }


def test_an_unclosed_fence_in_another_language_does_not_hide_a_tagged_program() -> None:
    assert extract("```python\ncode\n```\n```text\n4", "tagged", PYTHON) == "code\n"


@pytest.mark.parametrize("stray", ["```", "```\n\n", "```python", "```\n```\n", "```text\n \t\n```", "~~~"])
@pytest.mark.parametrize("policy", FENCED)
def test_a_stray_fence_around_nothing_costs_nothing(policy: Extraction, stray: str) -> None:
    assert extract(f"```python\ncode\n```\n{stray}", policy, PYTHON) == "code\n"


# Thinking


def test_only_what_follows_the_thinking_is_looked_at() -> None:
    text = "<think>\n```python\ndraft\n```\n</think>\n```python\nfinal\n```"

    assert [extract(text, policy, PYTHON) for policy in FENCED] == ["final\n"] * 4


def test_the_opening_tag_may_have_been_part_of_the_prompt() -> None:
    assert only("hm\n```python\ndraft\n```\n</think>```python\nfinal\n```") == "final\n"


def test_a_fence_left_open_while_thinking_does_not_swallow_the_answer() -> None:
    assert only("<think>```python\ndraft</think>\n```python\nfinal\n```") == "final\n"
    assert only("<think>\n```python\ndraft\n</think>\nno code") is None


def test_thinking_that_never_ended_holds_no_program() -> None:
    assert only(" \n<think>\n```python\ndraft\n```\n") is None
    assert only("About the <think> tag:\n```python\nfinal\n```\n") == "final\n"


# tagged


@pytest.mark.parametrize("tag", ["cpp", "c++", "C++17", "CPP", ' cpp title="main.cpp"', "cpp\ttitle"])
def test_a_tag_is_the_first_word_of_the_info_string_in_any_case(tag: str) -> None:
    text = f"```{tag}\ncode\n```\n```\noutput\n```\n```cpp20x\nother\n```"

    assert extract(text, "tagged", CPP) == "code\n"


@pytest.mark.parametrize("tag", ["", "c", "text cpp", "cpp,linenos"])
def test_a_fence_in_another_language_or_in_none_is_not_tagged(tag: str) -> None:
    assert extract(f"```{tag}\ncode\n```", "tagged", CPP) is None


# lcb: the cases measured on LiveCodeBench's own extractor


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```python\na\n```\n```python\nb\n```", "b"),
        ("```python\na\n```\nprints\n```\n42\n```", "42"),
        ("```python\na\n```\nprose\nmore\n```python\nb", "prose\nmore"),
        ("```python\na", None),
        ("a", None),
        ("~~~\na\n~~~", None),
        ("```x```", None),
        ("```python\na\n```\nthen ```inline```", None),
        ("```python\na\n```\nsome text\nthen ```inline```", "some text"),
        ("```python\ns = '```'\nprint(s)\n```", "print(s)"),
        ("<think>```\na\n```</think> so", "a"),
        ("    ```\na\r\nb\r\n    ```", "a\r\nb\r"),
        ("````\na\n````", "a"),
        ("```\n\n```", None),
        ("```\n \n```", " "),
    ],
)
def test_lcb_takes_what_lies_between_the_last_two_lines_with_backticks(text: str, program: str | None) -> None:
    assert extract(text, "lcb", PYTHON) == program
    assert (program or "") == between_the_last_two_lines_with_backticks(text)


def between_the_last_two_lines_with_backticks(text: str) -> str:
    lines = text.split("\n")
    marked = [number for number, line in enumerate(lines) if "```" in line]
    return "\n".join(lines[marked[-2] + 1 : marked[-1]]) if len(marked) > 1 else ""


# Size

MEGABYTE = 2**20


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("```python\n" + "x = 1\n" * 170 + "```\n", id="a thousand fences"),
        pytest.param("```\nx\n```\n", id="smallest fences"),
        pytest.param("```", id="one run of backticks"),
        pytest.param("``` ", id="many runs in one line"),
        pytest.param("   ```\n", id="indented, all unequal in role"),
        pytest.param("~~~ `\n", id="openings only"),
        pytest.param("   ", id="spaces"),
        pytest.param("\n", id="empty lines"),
        pytest.param("\r```", id="carriage returns"),
        pytest.param("```python\n   ``` x\n", id="never closed"),
        pytest.param("<think>", id="thinking never ends"),
        pytest.param("</think>", id="thinking ends often"),
        pytest.param("  ```\n" + " " * 4000 + "\n  ```\n", id="indentation to take off"),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_megabyte_of_anything_takes_well_under_a_second(policy: Extraction, text: str) -> None:
    completion = text * (MEGABYTE // len(text))

    began = time.process_time()
    extract(completion, policy, PYTHON)

    # A quadratic reading of any of these takes minutes.
    assert time.process_time() - began < 2


def test_a_completion_with_a_thousand_fences_gives_its_last() -> None:
    filler = "x = 1\n" * 170
    text = "".join(f"Try:\n```python\n{filler}print({number})\n```\n" for number in range(1000))

    assert len(text) > 10**6
    assert (extract(text, "last_fence", PYTHON) or "").endswith("print(999)\n")
    assert (extract(text, "first_fence", PYTHON) or "").endswith("print(0)\n")
    assert (extract(text, "tagged", PYTHON) or "").endswith("print(999)\n")
    assert (extract(text, "lcb", PYTHON) or "").endswith("print(999)")
    assert extract(text, "only_fence", PYTHON) is None
