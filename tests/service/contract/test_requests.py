"""What is accepted as a request, and the limits that it comes to."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from pydantic import ValidationError

from service.contract import MAX_BATCH_ITEMS, BatchRequest, GradeRequest, ProblemLimits, effective_limits
from tests.service.contract.samples import ID, LONE_SURROGATE, REQUEST, refused


def test_a_request_has_the_defaults_of_the_contract() -> None:
    request = GradeRequest.model_validate({"problem": ID, "language": "cpp", "completion": "no code"})

    assert request.model_dump() == {
        "problem": ID,
        "language": "cpp",
        "source": None,
        "completion": "no code",
        "extraction": "last_fence",
        "limits": {"cpu_s": None, "wall_s": None, "memory_mb": None, "output_mb": None, "processes": None},
        "time_factor": 1.0,
        "stop": "never",
        "taxonomy": "first_failure",
        "length_unit": "bytes",
        "detail": "verdicts",
        "fresh": False,
        "id": None,
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"problem": "sha256:abc"}, "problem"),
        ({"problem": ID + "\n"}, "problem"),
        ({"problem": ID.upper()}, "problem"),
        ({"problem": None}, "problem"),
        ({"problem": 7}, "problem"),
        ({"language": ""}, "language"),
        ({"language": "x" * 65}, "language"),
        ({"source": LONE_SURROGATE}, "source"),
        ({"source": "x" * (4 * 2**20 + 1)}, "source"),
        ({"source": None, "completion": LONE_SURROGATE}, "completion"),
        ({"extraction": "best"}, "extraction"),
        ({"extraction": "first_fence"}, "extraction"),
        ({"limits": {"cpu_s": float("nan")}}, "limits.cpu_s"),
        ({"limits": {"memory_gb": 1}}, "limits.memory_gb"),
        ({"time_factor": float("inf")}, "time_factor"),
        ({"time_factor": 0}, "time_factor"),
        ({"time_factor": 1000}, "time_factor"),
        ({"time_factor": "2"}, "time_factor"),
        ({"stop": "always"}, "stop"),
        ({"taxonomy": "lenient"}, "taxonomy"),
        ({"length_unit": "lines"}, "length_unit"),
        ({"detail": "all"}, "detail"),
        ({"id": "x" * 513}, "id"),
        ({"id": LONE_SURROGATE}, "id"),
        ({"timeout": 3}, "timeout"),
    ],
)
def test_a_malformed_request_is_refused_with_the_one_field_at_fault(change: dict[str, Any], field: str) -> None:
    assert list(refused(GradeRequest, REQUEST | change)) == [field]


def test_source_and_completion_exclude_each_other_and_an_empty_program_is_a_program() -> None:
    both_or_neither = dict.fromkeys(
        ("source", "completion"), "Give exactly one of `source` and `completion`, as a string"
    )

    assert refused(GradeRequest, REQUEST | {"completion": ""}) == both_or_neither
    assert refused(GradeRequest, {"problem": ID, "language": "c"}) == both_or_neither
    whole = GradeRequest.model_validate(REQUEST | {"source": ""})
    assert whole.source == ""
    assert GradeRequest.model_validate(whole.model_dump()) == whole


@pytest.mark.parametrize("taxonomy", ["any_wrong", "strict"])
def test_rules_that_need_every_test_refuse_to_stop_early(taxonomy: str) -> None:
    early = REQUEST | {"taxonomy": taxonomy, "stop": "first_failure"}

    assert refused(GradeRequest, early) == {
        "taxonomy": f"The rule `{taxonomy}` needs every test to be run: set `stop` to `never`"
    }
    assert GradeRequest.model_validate(early | {"stop": "never"}).taxonomy == taxonomy


def test_a_batch_is_bounded_and_names_the_item_at_fault() -> None:
    by_id = {"problem": ID, "language": "c", "source": ""}

    assert list(refused(BatchRequest, {"items": []})) == ["items"]
    assert list(refused(BatchRequest, {"items": [by_id] * (MAX_BATCH_ITEMS + 1)})) == ["items"]
    assert list(refused(BatchRequest, {"items": [by_id, REQUEST | {"problem": {"kind": "stdio"}}]})) == [
        "items[1].problem.tests",
    ]
    assert len(BatchRequest.model_validate({"items": [by_id, by_id]}).items) == 2


def test_values_are_frozen() -> None:
    request = GradeRequest.model_validate(REQUEST)

    with pytest.raises(ValidationError, match="frozen"):
        request.language = "c"


def limits_of(problem: dict[str, Any], **request: Any) -> dict[str, Any]:
    asked = GradeRequest.model_validate(REQUEST | request)
    return effective_limits(ProblemLimits.model_validate(problem), asked).model_dump(exclude_defaults=True)


def test_overrides_replace_single_limits_and_the_factor_multiplies_the_cpu_limit() -> None:
    assert limits_of({}) == {}
    assert limits_of({"cpu_s": 3, "memory_mb": 64}) == {"cpu_s": 3.0, "memory_mb": 64}
    assert limits_of({"cpu_s": 3, "memory_mb": 64}, limits={"memory_mb": 128, "processes": 1}) == {
        "cpu_s": 3.0,
        "memory_mb": 128,
        "processes": 1,
    }
    assert limits_of({"cpu_s": 3}, limits={"cpu_s": 5}, time_factor=2.5) == {"cpu_s": 12.5}
    assert limits_of({"cpu_s": 3}, time_factor=0.5) == {"cpu_s": 1.5}


def test_the_factor_takes_the_problems_wall_limit_along_but_not_the_requests() -> None:
    assert limits_of({"wall_s": 4.0}, time_factor=3) == {"cpu_s": 6.0, "wall_s": 12.0}
    assert limits_of({"wall_s": 4.0}, time_factor=3, limits={"wall_s": 5}) == {"cpu_s": 6.0, "wall_s": 5.0}


def test_a_factor_cannot_carry_a_limit_past_its_bound() -> None:
    with pytest.raises(ValidationError) as caught:
        limits_of({"cpu_s": 10}, time_factor=100)

    assert [error["loc"] for error in caught.value.errors()] == [("cpu_s",)]


def test_nothing_of_a_request_is_kept_once_it_is_gone() -> None:
    def parse(first: int) -> int:
        """Bytes of memory in use afterwards."""
        for number in range(first, first + 3000):
            text = f'{{"problem": "sha256:{number:064}", "language": "python", "source": "print({number})"}}'
            GradeRequest.model_validate_json(text)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = parse(0)
        assert parse(3000) - before < 20_000
    finally:
        tracemalloc.stop()
