"""Whatever is wrong with a request: one shape of answer, the field at fault, and a service that goes on."""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import zstandard

from service.contract import MAX_BATCH_ITEMS, MAX_SOURCE_CHARS

pytestmark = pytest.mark.jail

Edit = Callable[[dict[str, Any]], object]


def assert_refused(answer: httpx.Response, status: int, kind: str, field: str | None = None) -> dict[str, Any]:
    """One problem+json (RFC 9457), and nothing of the inside in it."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem: dict[str, Any] = answer.json()
    assert problem["type"] == f"urn:rkgrade:error:{kind}"
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert problem.get("field") == field
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" not in answer.text
    return problem


def edited(request: dict[str, Any], edit: Edit) -> dict[str, Any]:
    changed = copy.deepcopy(request)
    edit(changed)
    return changed


FIELDS: list[tuple[str, Edit]] = [
    ("language", lambda r: r.pop("language")),
    ("language", lambda r: r.update(language="brainfuck")),
    ("language", lambda r: r.update(language=7)),
    ("problem", lambda r: r.pop("problem")),
    ("problem", lambda r: r.update(problem=None)),
    ("problem", lambda r: r.update(problem="no id at all")),
    ("problem.kind", lambda r: r["problem"].update(kind="riddle")),
    ("problem.tests", lambda r: r["problem"].update(tests=[])),
    ("problem.tests[0].output", lambda r: r["problem"]["tests"][0].pop("output")),
    ("problem.tests[3].input", lambda r: r["problem"].update(tests=_four_tests())),
    ("problem.tests[0].inptu", lambda r: r["problem"]["tests"][0].update(inptu="1")),
    ("problem.checker.type", lambda r: r["problem"].update(checker={"type": "telepathy"})),
    ("problem.checker.type", lambda r: r["problem"].update(checker={})),
    (
        "problem.checker.float_absolute",
        lambda r: r["problem"].update(checker={"type": "tokens", "float_absolute": -1.0}),
    ),
    ("problem.limits.cpu_s", lambda r: r["problem"].update(limits={"cpu_s": 0})),
    ("problem.limits.memory_mb", lambda r: r["problem"].update(limits={"memory_mb": "lots"})),
    ("source", lambda r: r.pop("source")),
    ("source", lambda r: r.update(completion="```\n```")),
    ("source", lambda r: r.update(source="x" * (MAX_SOURCE_CHARS + 1))),
    ("limits.cpu_s", lambda r: r.update(limits={"cpu_s": 10_000})),
    ("time_factor", lambda r: r.update(time_factor=0)),
    ("time_factor", lambda r: r.update(time_factor=100, limits={"cpu_s": 200.0})),
    ("stop", lambda r: r.update(stop="sometimes")),
    ("taxonomy", lambda r: r.update(stop="first_failure", taxonomy="strict")),
    ("extraction", lambda r: r.update(extraction="guess")),
    ("extraction", lambda r: r.update(extraction="tagged")),
    ("detail", lambda r: r.update(detail="everything")),
    ("length_unit", lambda r: r.update(length_unit="miles")),
    ("unheard_of", lambda r: r.update(unheard_of=1)),
]


def _four_tests() -> list[dict[str, Any]]:
    return [*({"input": "1 2\n", "output": "3\n"} for _ in range(3)), {"input": 12, "output": "3\n"}]


@pytest.mark.parametrize(("field", "edit"), FIELDS)
def test_a_mistake_is_named_by_its_field(grader_url: str, a_plus_b: dict[str, Any], field: str, edit: Edit) -> None:
    answer = httpx.post(f"{grader_url}/grade", json=edited(a_plus_b, edit))
    problem = assert_refused(answer, 422, "invalid-request", field)
    assert field in [error["field"] for error in problem["errors"]]


@pytest.mark.parametrize(("field", "edit"), FIELDS)
def test_one_bad_item_refuses_the_whole_batch_before_anything_runs(
    grader_url: str, a_plus_b: dict[str, Any], field: str, edit: Edit
) -> None:
    items = [a_plus_b, a_plus_b, a_plus_b, edited(a_plus_b, edit)]
    before = httpx.get(f"{grader_url}/metrics").text
    answer = httpx.post(f"{grader_url}/grade/batch", json={"items": items})
    assert_refused(answer, 422, "invalid-request", f"items[3].{field}")
    after = httpx.get(f"{grader_url}/metrics").text
    assert _grades(after) == _grades(before)


def _grades(exposition: str) -> list[str]:
    return [line for line in exposition.splitlines() if line.startswith("rkgrade_grades_total")]


def test_several_mistakes_are_all_listed(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    del a_plus_b["language"]
    a_plus_b["problem"]["tests"].append({"input": "1"})
    problem = assert_refused(
        httpx.post(f"{grader_url}/grade", json=a_plus_b), 422, "invalid-request", "problem.tests[1].output"
    )
    assert [error["field"] for error in problem["errors"]] == ["problem.tests[1].output", "language"]
    assert problem["detail"].endswith("(and 1 more)")


def test_very_many_mistakes_are_counted(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    many = dict.fromkeys(map(str, range(300_000)), 0)
    for path, sent in {"/grade": a_plus_b | many, "/problems": {"kind": "stdio"} | many}.items():
        answer = httpx.request("PUT" if path == "/problems" else "POST", f"{grader_url}{path}", json=sent, timeout=60)
        assert answer.status_code == 422
        assert re.search(r"the body holds 300,00\d mistakes, too many to name", answer.json()["detail"]), answer.text
        assert len(answer.content) < 1000


def test_unknown_languages_of_a_batch_are_all_listed(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    items = [edited(a_plus_b, lambda r, name=name: r.update(language=name)) for name in ("python", "x", "y")]
    answer = httpx.post(f"{grader_url}/grade/batch", json={"items": items})
    problem = assert_refused(answer, 422, "invalid-request", "items[1].language")
    assert [error["field"] for error in problem["errors"]] == ["items[1].language", "items[2].language"]
    assert "python, python-exec, c, cpp, cpp20" in problem["detail"]


@pytest.mark.parametrize("items", [[], [{}] * (MAX_BATCH_ITEMS + 1), "many"])
def test_a_batch_of_none_and_of_too_many_is_refused(grader_url: str, items: Any) -> None:
    answer = httpx.post(f"{grader_url}/grade/batch", json={"items": items})
    assert answer.json()["errors"][0]["field"].startswith("items")
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"not json",
        b'{"problem": \xff}',
        b'{"language": "\\ud800"',
        b"[" * 100_000,
        b'{"problem": NaN, "problem": }',
    ],
)
def test_what_is_no_json_is_refused(grader_url: str, body: bytes) -> None:
    assert_refused(httpx.post(f"{grader_url}/grade", content=body), 422, "invalid-request")


@pytest.mark.parametrize("body", [b"null", b"[]", b"7", b'"sha256:"'])
def test_json_that_is_no_object_is_refused(grader_url: str, body: bytes) -> None:
    assert_refused(httpx.post(f"{grader_url}/grade", content=body), 422, "invalid-request")


@pytest.mark.parametrize("identifier", ["sha256:" + "0" * 64, "sha256:short", "..%2f..%2fetc%2fpasswd"])
def test_an_unknown_problem_is_not_found(grader_url: str, identifier: str) -> None:
    assert_refused(httpx.get(f"{grader_url}/problems/{identifier}"), 404, "not-found")


def test_grading_by_an_unknown_id_is_not_found_and_names_the_field(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["problem"] = "sha256:" + "0" * 64
    assert_refused(httpx.post(f"{grader_url}/grade", json=a_plus_b), 404, "not-found", "problem")
    answer = httpx.post(f"{grader_url}/grade/batch", json={"items": [a_plus_b]})
    assert_refused(answer, 404, "not-found", "items[0].problem")


def test_other_paths_and_methods_are_refused_in_the_same_shape(grader_url: str) -> None:
    assert_refused(httpx.get(f"{grader_url}/nowhere"), 404, "not-found")
    for path, allowed in (("/grade", "POST"), ("/problems/none", "GET"), ("/jobs/none", "DELETE, GET"), ("/", "GET")):
        answer = httpx.patch(f"{grader_url}{path}")
        assert_refused(answer, 405, "method-not-allowed")
        assert answer.headers["allow"].replace(", HEAD", "") == allowed


@pytest.mark.parametrize(
    ("encoding", "body", "status", "kind"),
    [
        ("br", b"{}", 415, "unsupported-encoding"),
        ("gzip", b"{}", 400, "malformed-body"),
        ("zstd", b"{}", 400, "malformed-body"),
        ("gzip", gzip.compress(b"{}" * 1000)[:-5], 400, "malformed-body"),
        ("zstd", zstandard.compress(b"{}" * 1000)[:-5], 400, "malformed-body"),
    ],
)
def test_bodies_that_cannot_be_decoded_are_refused(
    grader_url: str, encoding: str, body: bytes, status: int, kind: str
) -> None:
    answer = httpx.post(f"{grader_url}/grade", content=body, headers={"Content-Encoding": encoding})
    assert_refused(answer, status, kind)


def test_a_stored_problem_that_is_damaged_is_reported_not_graded(grader: Any, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["problem"]["tests"][0]["name"] = "to be damaged"
    identifier = httpx.put(f"{grader.url}/problems", json=a_plus_b["problem"]).json()["id"]
    digest = identifier.removeprefix("sha256:")
    path = grader.data_dir / "problems" / digest[:2] / f"{digest[2:]}.json"
    path.write_bytes(path.read_bytes().replace(b'"3\\n"', b'"4\\n"'))
    assert_refused(httpx.get(f"{grader.url}/problems/{identifier}"), 500, "stored-problem-corrupt")
    by_id = a_plus_b | {"problem": identifier}
    assert_refused(httpx.post(f"{grader.url}/grade", json=by_id), 500, "stored-problem-corrupt")
    [line] = httpx.post(f"{grader.url}/grade/batch", json={"items": [by_id]}).text.splitlines()
    result = json.loads(line)
    assert (result["verdict"], result["category"], result["rewards"]) == ("internal_error", None, {"R_inf": None})
    assert httpx.put(f"{grader.url}/problems", json=a_plus_b["problem"]).status_code == 201
    assert httpx.post(f"{grader.url}/grade", json=by_id).json()["verdict"] == "accepted"


def test_bodies_past_the_limit_are_refused_and_the_next_request_is_served(serve: Any, a_plus_b: dict[str, Any]) -> None:
    big = json.dumps(a_plus_b | {"source": "#" * (3 * 2**20)}).encode()
    chunks = [big[start : start + 65536] for start in range(0, len(big), 65536)]
    with serve("--body-limit-mb", "2") as server, httpx.Client(base_url=server.url) as client:
        for path in ("/grade", "/grade/batch"):
            assert_refused(client.post(path, content=big), 413, "body-too-large")
        assert_refused(client.put("/problems", content=big), 413, "body-too-large")
        assert_refused(client.post("/grade", content=iter(chunks)), 413, "body-too-large")
        for encoding, packed in (("gzip", gzip.compress(big)), ("zstd", zstandard.compress(big))):
            answer = client.post("/grade", content=packed, headers={"Content-Encoding": encoding})
            assert_refused(answer, 413, "body-too-large")
        assert client.post("/grade", json=a_plus_b).json()["verdict"] == "accepted"


# Large and odd, but right: each works.


def test_a_program_of_1_mb_is_graded(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["source"] += "#" * 2**20
    assert httpx.post(f"{grader_url}/grade", json=a_plus_b, timeout=60).json()["verdict"] == "accepted"


def test_a_test_of_50_mb_is_graded(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["problem"]["tests"] = [{"input": "1 2\n" + "x" * (50 * 2**20), "output": "3\n"}]
    result = httpx.post(f"{grader_url}/grade", json=a_plus_b, timeout=120).json()
    assert result["verdict"] == "accepted"
    assert result["tests"][0]["input_length"] == 50 * 2**20 + 4
    assert result["rewards"]["R_7"] is None
    assert result["rewards"]["R_8"] == 1


def test_a_problem_of_500_tests_is_graded(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    a_plus_b["problem"]["tests"] = [{"input": f"{n} {n}\n", "output": f"{2 * n}\n"} for n in range(500)]
    result = httpx.post(f"{grader_url}/grade", json=a_plus_b, timeout=120).json()
    assert result["verdict"] == "accepted"
    assert len(result["tests"]) == 500


def test_a_completion_of_1000_fences_is_graded(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    source = a_plus_b.pop("source")
    a_plus_b["completion"] = "```python\nraise SystemExit(1)\n```\n" * 999 + f"```python\n{source}```\n"
    assert httpx.post(f"{grader_url}/grade", json=a_plus_b).json()["verdict"] == "accepted"
