"""Alphas, ranges of them, and weights."""

from __future__ import annotations

import pytest

from rl_client.merge.recipes import alphas_of, distinct, of_alpha, of_weights


@pytest.mark.parametrize(
    ("text", "alphas"),
    [
        ("-0.5:1.5:0.25", [-0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5]),
        ("0:1:0.1", [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]),
        ("0:1:0.4", [0, 0.4, 0.8]),
        ("2:2:1", [2]),
    ],
)
def test_a_range_has_both_ends_and_no_error_that_adds_up(text: str, alphas: list[float]) -> None:
    assert alphas_of(text) == alphas


@pytest.mark.parametrize(
    "text",
    ["", "1", "0:1", "0:1:0", "0:1:-1", "1:0:1", "0:inf:1", "nan:1:1", "a:b:c", "0:1:0.001", "0:1e999999:1e-999999"],
)
def test_a_range_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="alphas"):
        alphas_of(text)


def test_folders_are_named_by_the_shortest_number() -> None:
    names = [of_alpha(alpha).name for alpha in (-0.5, 0, -0.0, 1, 1.5, 1e-7, 0.1 + 0.2)]
    numbers = ["-0.5", "0", "0", "1", "1.5", "1e-07", "0.30000000000000004"]
    assert names == [f"alpha={number}" for number in numbers]
    assert of_weights("0.5,0.3,0.2", 3).name == "weights=0.5,0.3,0.2"


def test_weights_that_are_too_long_for_a_folder_are_named_by_their_hash() -> None:
    third = of_weights(",".join(["0.03333333333333333"] * 30), 30)
    other = of_weights(",".join(["0.03333333333333333"] * 28 + ["0.01", "0.05666666666666666"]), 30)
    assert [len(one.name) for one in (third, other)] == [27, 27]
    assert third.name.startswith("weights=30-")
    assert third.name != other.name
    assert third.coefficients == (0.03333333333333333,) * 30


def test_alpha_weighs_high_and_the_rest_low() -> None:
    assert of_alpha(-0.5).coefficients == (1.5, -0.5)
    assert of_alpha(1).coefficients == (0, 1)
    assert str(of_alpha(-0.0)) == str(of_alpha(0.0))


@pytest.mark.parametrize("alpha", [float("nan"), float("inf"), float("-inf")])
def test_an_alpha_that_is_no_number_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        of_alpha(alpha)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("0.5,0.5", "2 weights for 3"), ("1,1,1", "add up to 1"), ("a,b,c", "numbers"), ("nan,0,1", "finite")],
)
def test_weights_that_are_none_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        of_weights(text, 3)


def test_the_same_output_is_made_once_and_not_too_many_are() -> None:
    assert [one.name for one in distinct(map(of_alpha, (0.5, 1, 0.5)))] == ["alpha=0.5", "alpha=1"]
    with pytest.raises(ValueError, match="64 at most"):
        distinct(of_alpha(number) for number in range(65))
