"""POST /grade, end to end: real programs in real cells."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import Any

import httpx
import pytest
import zstandard

from service.contract import GradeResult

pytestmark = pytest.mark.jail

#: Right, but too slow from inputs of 100 bytes on.
SLOW = "text = input()\nwhile len(text) >= 99:\n    pass\nprint(len(text))\n"


def grade(url: str, request: dict[str, Any]) -> dict[str, Any]:
    answer = httpx.post(f"{url}/grade", json=request, timeout=60)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    GradeResult.model_validate_json(answer.content)
    result: dict[str, Any] = answer.json()
    return result


@pytest.fixture
def lengths() -> dict[str, Any]:
    """Print the length of a line: tests of 10, 100 and 1000 bytes, newline included."""
    return {
        "problem": {
            "kind": "stdio",
            "tests": [{"input": "x" * (n - 1) + "\n", "output": str(n - 1)} for n in (1000, 10, 100)],
            "limits": {"cpu_s": 0.5},
        },
        "language": "python",
        "source": "print(len(input()))\n",
    }


def test_an_accepted_program(grader_url: str, lengths: dict[str, Any]) -> None:
    result = grade(grader_url, lengths | {"id": "step-1/3"})
    assert result["id"] == "step-1/3"
    assert result["index"] is None
    assert (result["verdict"], result["category"]) == ("accepted", "correct")
    assert result["rewards"] == {"R_1": None, "R_2": 1, "R_3": 1, "R_4": 1, "R_inf": 1}
    assert result["first_failure_length"] is None
    assert [test["input_length"] for test in result["tests"]] == [1000, 10, 100]
    assert result["grader"]["secure"] is True
    assert result["grader"]["language_version"].startswith("Python 3")
    timing = result["timing"]
    assert 0 < timing["run_s"] < timing["total_s"]


def test_a_slow_program_earns_the_groups_below_its_first_failure(grader_url: str, lengths: dict[str, Any]) -> None:
    result = grade(grader_url, lengths | {"source": SLOW})
    assert (result["verdict"], result["category"]) == ("time_limit", "optimization_failure")
    assert result["first_failure_length"] == 100
    assert result["rewards"] == {"R_1": None, "R_2": 1, "R_3": 0, "R_4": 0, "R_inf": 0}
    assert [test["verdict"] for test in result["tests"]] == ["time_limit", "accepted", "time_limit"]


def test_stopping_at_the_first_failure_gives_the_same_rewards(grader_url: str, lengths: dict[str, Any]) -> None:
    result = grade(grader_url, lengths | {"source": SLOW, "stop": "first_failure"})
    assert [test["verdict"] for test in result["tests"]] == ["skipped", "accepted", "time_limit"]
    assert result["rewards"] == {"R_1": None, "R_2": 1, "R_3": 0, "R_4": 0, "R_inf": 0}


def test_overrides_and_time_factor_change_the_limit(grader_url: str, lengths: dict[str, Any]) -> None:
    result = grade(
        grader_url,
        lengths | {"source": SLOW, "stop": "first_failure", "limits": {"cpu_s": 0.1}, "time_factor": 2.0},
    )
    failed = result["tests"][2]
    assert failed["verdict"] == "time_limit"
    assert "0.2 s" in failed["message"]


def test_lengths_are_counted_in_the_unit_asked_for(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["problem"]["tests"] = [{"input": "1 2\né", "output": "3"}]
    assert grade(grader_url, a_plus_b)["tests"][0]["input_length"] == 6
    assert grade(grader_url, a_plus_b | {"length_unit": "chars"})["tests"][0]["input_length"] == 5


def test_a_wrong_answer_tells_nothing_of_the_test_unless_asked(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["source"] = "print('tell-tale')"
    row = grade(grader_url, a_plus_b)["tests"][0]
    assert (row["verdict"], row["stdout_tail"], row["checker_message"]) == ("wrong_answer", None, None)
    shown = grade(grader_url, a_plus_b | {"detail": "outputs"})["tests"][0]
    assert shown["stdout_tail"] == "tell-tale\n"
    assert "3" in shown["checker_message"]


def test_output_that_is_not_utf8_is_shown_with_replacements(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["source"] = "import os\nos.write(1, b'\\xff\\x00ok')"
    result = grade(grader_url, a_plus_b | {"detail": "outputs"})
    assert result["tests"][0]["stdout_tail"] == "�\0ok"


def test_a_completion_is_graded_by_its_last_fence(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    source = a_plus_b.pop("source")
    a_plus_b["completion"] = f"First\n```python\nprint(1)\n```\nno, rather\n```python\n{source}```\n"
    assert grade(grader_url, a_plus_b)["verdict"] == "accepted"
    assert grade(grader_url, a_plus_b | {"extraction": "first_fence"})["verdict"] == "wrong_answer"


def test_no_program_is_a_format_error_and_runs_nothing(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    del a_plus_b["source"]
    result = grade(grader_url, a_plus_b | {"completion": "I do not know."})
    assert (result["verdict"], result["category"]) == ("format_error", "format_error")
    assert result["rewards"] == {"R_1": 0, "R_inf": 0}
    assert result["compile"] is None
    assert result["timing"]["run_s"] == 0
    assert [(test["verdict"], test["cpu_s"]) for test in result["tests"]] == [("skipped", None)]


def test_what_does_not_compile_is_a_correctness_failure(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    result = grade(grader_url, a_plus_b | {"language": "cpp", "source": "int main() { return nothing; }"})
    assert (result["verdict"], result["category"]) == ("compile_error", "correctness_failure")
    assert result["compile"]["ok"] is False
    assert "nothing" in result["compile"]["message"]
    assert [test["verdict"] for test in result["tests"]] == ["skipped"]
    assert result["rewards"] == {"R_1": 0, "R_inf": 0}


def test_compiled_programs_are_cached(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    a_plus_b |= {
        "language": "C++17",
        "source": '#include <cstdio>\nint main() { int a, b; scanf("%d%d", &a, &b); printf("%d", a + b); }\n',
    }
    first, second = grade(grader_url, a_plus_b), grade(grader_url, a_plus_b)
    assert first["language"] == second["language"] == "cpp"
    assert first["verdict"] == second["verdict"] == "accepted"
    assert second["compile"]["cached"] is True


def test_every_language_listed_is_graded_by_each_of_its_names(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    listed = httpx.get(f"{grader_url}/languages").json()
    assert {"python", "python-exec", "c", "cpp", "cpp20"} <= {one["id"] for one in listed}
    for one in listed:
        assert one["version"]
        for name in (one["id"].upper(), *one["aliases"]):
            result = grade(grader_url, a_plus_b | {"language": name})
            assert result["language"] == one["id"]
            expected = "accepted" if one["id"].startswith("python") else "compile_error"
            assert result["verdict"] == expected


def test_grading_by_id_is_grading_the_problem(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    name = f"by id {uuid.uuid4()}"
    a_plus_b["problem"]["tests"][0]["name"] = name
    stored = httpx.put(f"{grader_url}/problems", json=a_plus_b["problem"])
    assert stored.status_code == 201
    identifier = stored.json()["id"]
    assert stored.headers["location"] == f"/problems/{identifier}"
    assert httpx.put(f"{grader_url}/problems", json=a_plus_b["problem"]).status_code == 200
    inline, by_id = grade(grader_url, a_plus_b), grade(grader_url, a_plus_b | {"problem": identifier})
    assert inline["problem_id"] == by_id["problem_id"] == identifier
    assert inline["rewards"] == by_id["rewards"]
    known = httpx.get(f"{grader_url}/problems/{identifier}").json()
    assert known["test_count"] == 1
    assert known["tests"][0] == {
        "index": 0,
        "name": name,
        "input_bytes": 4,
        "input_chars": 4,
        "output_bytes": 2,
        "points": None,
        "group": None,
    }


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_compressed_bodies_are_graded(grader_url: str, a_plus_b: dict[str, Any], encoding: str, pack: Any) -> None:
    body = pack(json.dumps(a_plus_b).encode())
    answer = httpx.post(f"{grader_url}/grade", content=body, headers={"Content-Encoding": encoding})
    assert answer.json()["verdict"] == "accepted"


def test_a_request_id_is_taken_over_or_made(grader_url: str) -> None:
    answer = httpx.get(f"{grader_url}/languages", headers={"X-Request-ID": "trace-7"})
    assert answer.headers["x-request-id"] == "trace-7"
    made = [httpx.get(f"{grader_url}/languages").headers["x-request-id"] for _ in range(2)]
    assert made[0] != made[1]


def test_openapi_describes_bodies_that_routes_read_themselves(grader_url: str) -> None:
    document = httpx.get(f"{grader_url}/openapi.json").json()
    schemas = document["components"]["schemas"]
    for path, method, model in (
        ("/grade", "post", "GradeRequest"),
        ("/grade/batch", "post", "BatchRequest"),
        ("/problems", "put", "Problem"),
    ):
        body = document["paths"][path][method]["requestBody"]
        assert body["required"] is True
        assert body["content"]["application/json"]["schema"] == {"$ref": f"#/components/schemas/{model}"}
        assert model in schemas
    for path in document["paths"].values():
        for operation in path.values():
            refused = operation["responses"]["422"]["content"]
            assert refused == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    referred = {part.split('"')[0] for part in json.dumps(document).split('"#/components/schemas/')[1:]}
    assert referred <= set(schemas)
