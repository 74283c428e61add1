"""What is told of a stored problem."""

from __future__ import annotations

from service.contract import ExactChecker, PointGroup, StdioProblem, StdioTest, describe, problem_id


def test_a_description_holds_counts_and_lengths_but_no_data() -> None:
    problem = StdioProblem(
        kind="stdio",
        tests=(
            StdioTest(input="secret é", output="hidden", name="one", points=2.5, group="g"),
            StdioTest(input="", output="é"),
        ),
        checker=ExactChecker(type="exact"),
        groups={"g": PointGroup(scoring="min")},
        input_file="a.in",
    )

    info = describe(problem)

    assert info.model_dump(exclude={"limits"}) == {
        "id": problem_id(problem),
        "kind": "stdio",
        "test_count": 2,
        "longest_input_bytes": 9,
        "tests": (
            {
                "index": 0,
                "name": "one",
                "input_bytes": 9,
                "input_chars": 8,
                "output_bytes": 6,
                "points": 2.5,
                "group": "g",
            },
            {
                "index": 1,
                "name": None,
                "input_bytes": 0,
                "input_chars": 0,
                "output_bytes": 2,
                "points": None,
                "group": None,
            },
        ),
        "checker": {"type": "exact"},
        "exit_code": "strict",
        "groups": {"g": {"scoring": "min", "depends": ()}},
        "input_file": "a.in",
        "output_file": None,
        "function": None,
        "runner": None,
        "entry_point": None,
        "interactor": None,
        "passes": 1,
    }
    assert info.limits == problem.limits
    assert "secret" not in info.model_dump_json()
    assert "hidden" not in info.model_dump_json()
