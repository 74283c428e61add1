"""Labels: their two forms, what they ask for, and that every mistake names its field."""

from __future__ import annotations

import json
import time

import pytest

from rl_client.errors import BadLabel
from rl_client.labels import Label, named, parse_label
from rl_client.repair import Rollout
from rl_client.rollout import Scored
from service.contract import LimitOverrides, Verdict
from tests.rl_client.results import PROBLEM, graded, unrun

AC = Verdict.ACCEPTED
WA = Verdict.WRONG_ANSWER
TLE = Verdict.TIME_LIMIT


def test_a_problems_id_is_a_label() -> None:
    assert parse_label(PROBLEM) == Label(problem=PROBLEM)
    assert parse_label(f" {PROBLEM}\n") == Label(problem=PROBLEM)


def test_json_says_more_as_text_or_as_what_it_holds() -> None:
    fields = {
        "problem": PROBLEM,
        "reward": "ladder:2=0.5,inf=0.5",
        "empty": "next",
        "fault": "retry",
        "scale": [0.1, 0.9],
        "format_error": -1,
        "compile_error": -0.5,
        "language": "cpp",
        "extraction": "tagged",
        "limits": {"cpu_s": 4.0},
        "time_factor": 2.5,
        "length_unit": "chars",
    }
    label = parse_label(json.dumps(fields))
    assert label == parse_label(fields)
    assert (label.scale, label.format_error, label.limits) == ((0.1, 0.9), -1.0, LimitOverrides(cpu_s=4.0))


def test_what_a_label_leaves_out_is_as_the_trainers_defaults_have_it() -> None:
    defaults = {"reward": "r_k:2", "language": "cpp"}
    assert parse_label(PROBLEM, defaults) == Label(problem=PROBLEM, reward="r_k:2", language="cpp")
    assert parse_label({"problem": PROBLEM, "reward": "r_inf"}, defaults).reward == "r_inf"


@pytest.mark.parametrize(
    ("label", "field", "words"),
    [
        (None, None, "neither the id of a problem, nor a JSON object, but nothing"),
        (7, None, "but int"),
        ([PROBLEM], None, "but list"),
        ("[]", "problem", ""),
        ("", "problem", ""),
        ("two-sum", "problem", ""),
        ("sha256:" + "0" * 63, "problem", ""),
        ("{", None, "not JSON"),
        ('{"a":' * 10_000, None, "not JSON"),
        ("{}", "problem", "Field required"),
        (f'{{"problem": "{PROBLEM}", "problem": "{PROBLEM}"}}', None, "the field 'problem' is there twice"),
        ({"problem": PROBLEM, "rewards": "r_inf"}, "rewards", ""),
        ({"problem": PROBLEM, "reward": "r_j:3"}, "reward", "no reward is called 'r_j'; there are r_inf, r_k"),
        ({"problem": PROBLEM, "reward": 3}, "reward", ""),
        ({"problem": PROBLEM, "reward": "ladder:" + "1=0.1," * 1000}, "reward", "at most 1000 characters"),
        ({"problem": PROBLEM, "empty": "zero"}, "empty", "it is skip, next or a number"),
        ({"problem": PROBLEM, "fault": "ignore"}, "fault", "it is skip, retry or a number"),
        ({"problem": PROBLEM, "fault": True}, "fault", ""),
        ({"problem": PROBLEM, "scale": [0, 1, 2]}, "scale", "it is unit, signed, or [low, high]"),
        ({"problem": PROBLEM, "scale": [1, "2"]}, "scale", ""),
        ({"problem": PROBLEM, "scale": [1, -1]}, "scale", "with low below high"),
        (f'{{"problem": "{PROBLEM}", "format_error": NaN}}', "format_error", "not finite"),
        ({"problem": PROBLEM, "format_error": -1.7e308}, "format_error", "between -1,000,000 and 1,000,000"),
        ({"problem": PROBLEM, "fault": 1e39}, "fault", ""),
        ({"problem": PROBLEM, "empty": 1e39}, "empty", ""),
        ({"problem": PROBLEM, "scale": [-1.7e308, 1.7e308]}, "scale", ""),
        ({"problem": PROBLEM, "compile_error": "-1"}, "compile_error", ""),
        ({"problem": PROBLEM, "language": ""}, "language", ""),
        ({"problem": PROBLEM, "thinking": 1}, "thinking", ""),
        ({"problem": PROBLEM, "limits": {"cpu_s": 0}}, "limits.cpu_s", ""),
        ({"problem": PROBLEM, "limits": {"cpus": 1}}, "limits.cpus", ""),
        ({"problem": PROBLEM, "time_factor": 0}, "time_factor", ""),
        ({"problem": PROBLEM, "length_unit": "words"}, "length_unit", ""),
    ],
)  # fmt: skip
def test_a_mistake_names_its_field(label: object, field: str | None, words: str) -> None:
    with pytest.raises(BadLabel) as bad:
        parse_label(label)
    assert bad.value.field == field
    assert words in bad.value.reason
    assert str(bad.value).startswith("label: " if field is None else f"label.{field}")
    assert "\n" not in str(bad.value)


def test_columns_of_objects_have_nulls_for_the_fields_of_other_rows() -> None:
    label = {"problem": PROBLEM, "reward": None, "scale": "signed", "limits": {"cpu_s": None, "memory_mb": 64}}
    assert parse_label(label) == parse_label({"problem": PROBLEM, "scale": "signed", "limits": {"memory_mb": 64}})
    assert parse_label(label, {"reward": "r_k:3"}).reward == "r_k:3"
    with pytest.raises(BadLabel, match=r"^label\.reward: "):
        parse_label(json.dumps(label))


def test_of_very_many_fields_the_one_that_is_there_twice_is_found_at_once() -> None:
    fields = ",".join(f'"f{at}":1' for at in (*range(6000), 5999))
    with pytest.raises(BadLabel, match="the field 'f5999' is there twice"):
        parse_label(f"{{{fields}}}")


MANY = {f"f{at}": at for at in range(500_000)}


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (
            {"problem": PROBLEM, **MANY},
            "label: 500,001 fields ('problem', 'f0', 'f1' ...), of which most are not known",
        ),
        (
            {"problem": PROBLEM, "limits": MANY},
            "label.limits: 500,000 fields ('f0', 'f1', 'f2' ...), of which most are not known",
        ),
        ("{" + ",".join(f'"{name}":0' for name in MANY) + "}", "label: 5,888,891 characters, and no label has more"),
        (
            "{" + ",".join(f'"f{at}":0' for at in range(5000)) + "}",
            "label: 5,001 mistakes, too many to name; most are fields that are not known",
        ),
        ({"problem": PROBLEM, **dict.fromkeys(list(MANY)[:900])}, None),
    ],
)
def test_of_very_many_fields_that_are_not_known_the_number_is_told_at_once(label: object, said: str | None) -> None:
    """Each took pydantic half a kilobyte and microseconds to tell of: half a million 3 s."""
    start_s = time.process_time()
    if said is None:
        assert parse_label(label) == parse_label(PROBLEM)
    else:
        with pytest.raises(BadLabel) as bad:
            parse_label(label)
        assert str(bad.value).startswith(said)
    assert time.process_time() - start_s < 0.5


@pytest.mark.parametrize(
    "name", ["r_inf", "r_k:3", "ladder:1=0.25,3=0.25,inf=0.5", "fraction", "log_progress", "two_gate", "collapsed"]
)
def test_rewards_go_by_the_names_that_they_have(name: str) -> None:
    assert named(name).name == name


def test_a_speed_reward_may_have_a_reference() -> None:
    fast = graded((4, AC), cpu_s=(0.1,))
    assert named("two_gate:0.2")(fast) == pytest.approx(0.5)
    assert named("collapsed:0.2")(fast) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "no reward is called ''"),
        ("R_3", "no reward is called"),
        ("r_k", "lacks what belongs behind the colon, as in r_k:3"),
        ("r_k:", "lacks what belongs"),
        ("r_inf:", "lacks what belongs"),
        ("r_k:0", "from 1 on"),
        ("r_k:-1", "no whole number"),
        ("r_k:3.0", "no whole number"),
        ("r_k:²", "no whole number"),
        ("r_inf:3", "takes nothing behind a colon"),
        ("ladder:1", "a rung is written as"),
        ("ladder:1=a", "'a' is no number"),
        ("ladder:1=nan", "not finite"),
        ("ladder:1=0.5,1=0.5", "there twice"),
        ("ladder:1=0.5,2=0.6", "add up to 1.1"),
        ("two_gate:fast", "no number"),
        ("two_gate:-1", "more than the start-up"),
    ],
)
def test_a_name_that_is_none(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        named(name)


def test_a_label_is_a_whole_reward() -> None:
    label = parse_label({"problem": PROBLEM, "reward": "r_k:2", "scale": "signed", "format_error": -2, "fault": 0.5})
    reward = label.reward_of_result()
    results = [
        graded((4, AC), (400, TLE)),
        graded((4, WA), (400, AC)),
        unrun("compile_error", 4, 400),
        unrun("format_error", 4, 400),
        graded((4, AC), (400, Verdict.INTERNAL_ERROR)),
    ]
    assert [reward(result) for result in results] == [1, -1, -1, -2, 0.5]


def test_scale_leaves_rewards_that_are_signed_as_they_are() -> None:
    for name in ("two_gate", "collapsed"):
        reward = parse_label({"problem": PROBLEM, "reward": name, "scale": "signed"}).reward_of_result()
        assert reward(graded((4, WA))) == -1


def test_tests_are_skipped_where_the_reward_does_without_them() -> None:
    stops = {
        name: parse_label({"problem": PROBLEM, "reward": name}).request("x").stop
        for name in ("r_inf", "r_k:3", "log_progress", "two_gate", "fraction")
    }
    assert stops == {
        "r_inf": "first_failure", "r_k:3": "first_failure", "log_progress": "first_failure",
        "two_gate": "first_failure", "fraction": "never",
    }  # fmt: skip


def test_half_of_a_surrogate_pair_in_an_answer_is_no_mistake_of_the_label() -> None:
    request = parse_label(PROBLEM).request("a\ud800b", id="x")
    assert (request.completion, request.id) == ("a?b", "x")


def test_an_answer_to_a_prompt_that_opens_thoughts_begins_in_them() -> None:
    label = parse_label({"problem": PROBLEM, "thinking": True})
    assert label.request("draft</think>yes").completion == "<think>draft</think>yes"
    rollout = Rollout.of("P<think>", "```\ndraft\n```", Scored(0.0, unrun("format_error", 4), label))
    assert rollout.program is None
