"""POST /jobs, GET /jobs/{id}, DELETE /jobs/{id}, and grades under a key: on both engines."""

from __future__ import annotations

import concurrent.futures
import hashlib
import hmac
import os
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Serve
from tests.owned_jobs import assert_only_the_owner_finds_a_job, named_tokens
from tests.serving import metric, poll

pytestmark = pytest.mark.jail


def ended(url: str, identifier: str, within_s: float = 60) -> dict[str, Any]:
    """The job, once it has ended."""
    found: dict[str, Any] = {}

    def over() -> bool:
        found.update(httpx.get(f"{url}/jobs/{identifier}").json())
        return found["status"] in ("done", "failed")

    poll(over, within_s, "the job ends")
    return found


def test_a_job_is_taken_at_once_and_its_result_asked_for(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    taken = httpx.post(f"{grader_url}/jobs", json=a_plus_b | {"id": "mine"})
    assert taken.status_code == 202
    identifier = taken.json()["id"]
    assert taken.headers["location"] == f"/jobs/{identifier}"
    job = ended(grader_url, identifier)
    assert (job["id"], job["status"], job["error"]) == (identifier, "done", None)
    assert (job["result"]["id"], job["result"]["verdict"]) == ("mine", "accepted")
    # It is kept, and a grade of the same is no different.
    assert httpx.get(f"{grader_url}/jobs/{identifier}").json() == job
    grade = httpx.post(f"{grader_url}/grade", json=a_plus_b | {"id": "mine"}).json()
    assert grade.keys() == job["result"].keys()


def test_a_job_is_among_the_last_grades_and_counted_once_however_often_it_is_posted(
    grader_url: str, a_plus_b: dict[str, Any]
) -> None:
    name = str(uuid.uuid4())

    def shown() -> list[dict[str, Any]]:
        return [one for one in httpx.get(f"{grader_url}/status").json()["grades"] if one["id"] == name]

    def counted() -> float:
        labels = 'category="correctness_failure",language="python",verdict="wrong_answer"'
        return metric(grader_url, f"rkgrade_grades_total{{{labels}}}")

    before = counted()
    wrong = a_plus_b | {"id": name, "source": "print(4)"}
    headers = {"Idempotency-Key": name, "X-Client-Id": "trainer"}
    for _ in range(2):
        identifier = httpx.post(f"{grader_url}/jobs", json=wrong, headers=headers).json()["id"]
        ended(grader_url, identifier)
        poll(shown, 10, "it is shown")
    [grade] = shown()
    assert (grade["client"], grade["verdict"], grade["tests"]) == ("trainer", "wrong_answer", {"wrong_answer": 1})
    assert counted() == before + 1


def test_a_job_that_runs_and_one_that_waits_are_stopped(grader_url: str, sleeper: dict[str, Any]) -> None:
    jobs = [httpx.post(f"{grader_url}/jobs", json=sleeper).json()["id"] for _ in range(4)]
    poll(
        lambda: {httpx.get(f"{grader_url}/jobs/{one}").json()["status"] for one in jobs} == {"waiting", "running"},
        10,
        "some run and some wait",
    )
    started = time.monotonic()
    for one in jobs:
        assert httpx.delete(f"{grader_url}/jobs/{one}").status_code == 204
        assert httpx.get(f"{grader_url}/jobs/{one}").status_code == 404
    health = httpx.post(f"{grader_url}/grade", json=sleeper | {"source": ""}, timeout=30)
    assert health.json()["verdict"] == "accepted"
    # Far from the 40 s that they would have slept.
    assert time.monotonic() - started < 10


def test_a_job_that_is_stopped_while_it_runs_may_be_posted_again_under_its_key(
    grader_url: str, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    identifier = httpx.post(f"{grader_url}/jobs", json=sleeper, headers=headers).json()["id"]
    poll(lambda: httpx.get(f"{grader_url}/jobs/{identifier}").json()["status"] == "running", 20, "it runs")
    assert httpx.delete(f"{grader_url}/jobs/{identifier}").status_code == 204
    # Another program by now: whoever has deleted a job may use its key for what they like.
    again = httpx.post(f"{grader_url}/jobs", json=a_plus_b, headers=headers)
    assert (again.status_code, again.json()["id"]) == (202, identifier)
    assert ended(grader_url, identifier)["result"]["verdict"] == "accepted"


@pytest.mark.parametrize("others", [0, 3], ids=["it runs", "it waits"])
def test_a_grade_whose_job_is_deleted_is_told_so(grader_url: str, sleeper: dict[str, Any], others: int) -> None:
    before = [httpx.post(f"{grader_url}/jobs", json=sleeper).json()["id"] for _ in range(others)]
    headers = {"Idempotency-Key": str(uuid.uuid4())}

    def states() -> list[str]:
        return [httpx.get(f"{grader_url}/jobs/{one}").json()["status"] for one in before]

    # A worker that has not taken one of those yet would take the grade before them.
    workers = min(2, len(os.sched_getaffinity(0)))
    poll(lambda: states().count("running") == min(others, workers), 20, "every worker has one")

    def has_come_in() -> bool:
        if others:
            return metric(grader_url, "rkgrade_queue_length") == others - workers + 1
        return metric(grader_url, "rkgrade_workers_busy") == 1

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        grade = pool.submit(httpx.post, f"{grader_url}/grade", json=sleeper, headers=headers, timeout=60)
        poll(has_come_in, 20, "the grade has come in")
        identifier = httpx.post(f"{grader_url}/jobs", json=sleeper, headers=headers).json()["id"]
        for one in (identifier, *before):
            assert httpx.delete(f"{grader_url}/jobs/{one}").status_code == 204
        answer = grade.result()
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:rkgrade:error:job-deleted")
    assert httpx.get(f"{grader_url}/jobs/{identifier}").status_code == 404


def test_a_result_that_is_deleted_is_forgotten(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    identifier = httpx.post(f"{grader_url}/jobs", json=a_plus_b).json()["id"]
    ended(grader_url, identifier)
    assert httpx.delete(f"{grader_url}/jobs/{identifier}").status_code == 204
    assert httpx.get(f"{grader_url}/jobs/{identifier}").status_code == 404
    assert httpx.delete(f"{grader_url}/jobs/{identifier}").status_code == 404


def test_an_unknown_job_is_not_found(grader_url: str) -> None:
    refused = httpx.get(f"{grader_url}/jobs/{uuid.uuid4().hex}")
    assert (refused.status_code, refused.json()["type"]) == (404, "urn:rkgrade:error:not-found")


def test_what_can_be_refused_is_refused_before_it_is_a_job(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    refused = httpx.post(f"{grader_url}/jobs", json=a_plus_b | {"language": "cobol"})
    assert (refused.status_code, refused.json()["field"]) == (422, "language")


def test_grades_under_one_key_are_one_grade(grader_url: str, sleeper: dict[str, Any]) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 2.0
    headers = {"Idempotency-Key": str(uuid.uuid4())}

    def grade() -> httpx.Response:
        return httpx.post(f"{grader_url}/grade", json=sleeper, headers=headers, timeout=60)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        first = [answer.result() for answer in [pool.submit(grade) for _ in range(3)]]
    again = grade()
    # What one run measured, to the nanosecond.
    assert {answer.text for answer in (*first, again)} == {again.text}
    assert again.json()["verdict"] == "idle"


def test_a_grade_with_a_key_goes_on_when_its_client_leaves(grader_url: str, sleeper: dict[str, Any]) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 2.0
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{grader_url}/grade", json=sleeper, headers=headers, timeout=httpx.Timeout(5, read=0.5))
    started = time.monotonic()
    assert httpx.post(f"{grader_url}/grade", json=sleeper, headers=headers, timeout=60).json()["verdict"] == "idle"
    again_s = time.monotonic() - started
    assert again_s < 30


def test_a_key_stands_for_one_request_of_one_client(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    assert httpx.post(f"{grader_url}/grade", json=a_plus_b, headers=headers).json()["verdict"] == "accepted"
    other = a_plus_b | {"source": "print(4)"}
    refused = httpx.post(f"{grader_url}/grade", json=other, headers=headers)
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:rkgrade:error:key-reused")
    assert refused.json()["field"] == "Idempotency-Key"
    elsewhere = httpx.post(f"{grader_url}/grade", json=other, headers=headers | {"X-Client-Id": "another"})
    assert elsewhere.json()["verdict"] == "wrong_answer"


def test_nobody_finds_a_job_by_guessing_its_client_and_its_key(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    key = str(uuid.uuid4())
    headers = {"Idempotency-Key": key, "X-Client-Id": "trainer"}
    identifier = httpx.post(f"{grader_url}/jobs", json=a_plus_b, headers=headers).json()["id"]
    for secret in (b"", b"trainer"):
        guesses = [hashlib.sha256(f"trainer\0{key}".encode()).hexdigest()]
        guesses.append(hmac.digest(secret, f"trainer\0{key}".encode(), "sha256").hex())
        assert identifier not in [guess[:32] for guess in guesses]
    assert ended(grader_url, identifier)["result"]["verdict"] == "accepted"


def test_a_job_is_read_and_stopped_by_the_client_whose_token_it_came_with_alone(
    serve: Serve, a_plus_b: dict[str, Any], tmp_path: Path
) -> None:
    tokens = named_tokens(tmp_path)
    with serve("--workers", "1", "--tokens-file", str(tokens)) as server:
        assert_only_the_owner_finds_a_job(server.url, a_plus_b)


def test_a_job_posted_twice_under_one_key_is_one_job(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    first, second = (httpx.post(f"{grader_url}/jobs", json=a_plus_b, headers=headers).json() for _ in range(2))
    assert first == second
    assert ended(grader_url, first["id"])["result"]["verdict"] == "accepted"


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Idempotency-Key", ""),
        ("Idempotency-Key", "k" * 256),
        ("X-Client-Id", "c" * 256),
        ("X-Deadline-S", "0"),
        ("X-Deadline-S", "-1"),
        ("X-Deadline-S", "nan"),
        ("X-Deadline-S", "soon"),
        ("X-Deadline-S", "86401"),
    ],
)
def test_a_malformed_header_is_named(grader_url: str, a_plus_b: dict[str, Any], header: str, value: str) -> None:
    refused = httpx.post(f"{grader_url}/grade", json=a_plus_b, headers={header: value})
    assert (refused.status_code, refused.json()["field"]) == (422, header)


def test_a_batch_takes_no_key(grader_url: str, a_plus_b: dict[str, Any]) -> None:
    refused = httpx.post(f"{grader_url}/grade/batch", json={"items": [a_plus_b]}, headers={"Idempotency-Key": "k"})
    assert (refused.status_code, refused.json()["field"]) == (422, "Idempotency-Key")


def test_a_deadline_ends_what_runs_and_what_waits(
    grader_url: str, sleeper: dict[str, Any], a_plus_b: dict[str, Any]
) -> None:
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        started = time.monotonic()
        answers = [
            pool.submit(httpx.post, f"{grader_url}/grade", json=sleeper, headers={"X-Deadline-S": "1.5"}, timeout=60)
            for _ in range(4)
        ]
        for answer in answers:
            refused = answer.result()
            assert (refused.status_code, refused.json()["type"]) == (504, "urn:rkgrade:error:deadline-passed")
        assert httpx.post(f"{grader_url}/grade", json=a_plus_b, timeout=30).json()["verdict"] == "accepted"
        assert time.monotonic() - started < 12


def test_a_job_whose_deadline_passed_has_failed(grader_url: str, sleeper: dict[str, Any]) -> None:
    jobs = [
        httpx.post(f"{grader_url}/jobs", json=sleeper, headers={"X-Deadline-S": "1"}).json()["id"] for _ in range(3)
    ]
    for one in jobs:
        job = ended(grader_url, one, 15)
        assert (job["status"], job["error"]["type"]) == ("failed", "urn:rkgrade:error:deadline-passed")


def test_a_grader_all_by_itself_that_is_started_again_grades_again_what_is_asked_again(
    serve: Serve, sleeper: dict[str, Any]
) -> None:
    sleeper["problem"]["limits"]["wall_s"] = 3.0
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    with serve("--workers", "1") as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(httpx.post, f"{server.url}/grade", json=sleeper, headers=headers, timeout=60)
        poll(lambda: metric(server.url, "rkgrade_workers_busy") == 1, 10, "the sleeper runs")
        server.process.kill()
        assert isinstance(waiting.exception(), httpx.TransportError)
    with serve("--workers", "1") as server:
        answers = [httpx.post(f"{server.url}/grade", json=sleeper, headers=headers, timeout=60).text for _ in range(2)]
        assert answers[0] == answers[1]
        assert '"verdict":"idle"' in answers[0]
