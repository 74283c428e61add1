"""Results that are answered without running, by both engines and across their processes."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.data_dirs import data_dir
from tests.redis_server import RedisServer, redis_server
from tests.serving import Host, Server, metric, poll, serving, working

pytestmark = pytest.mark.jail

ON = ("--verdict-cache", "--languages", "python,c")
CORES = len(os.sched_getaffinity(0))


class Setting:
    """A grader that keeps results, of either engine, with two workers where there are the cores."""

    def __init__(self, server: Server, host: Server | Host, data: Path, redis: RedisServer | None) -> None:
        self.server = server
        self.host = host
        """What has the workers."""
        self._data = data
        self._redis = redis

    @property
    def url(self) -> str:
        return self.server.url

    def lookups(self, cache: str) -> int:
        return int(metric(self.url, f'rkgrade_verdict_lookups_total{{cache="{cache}"}}'))

    def entries(self) -> dict[str, bytes]:
        """What is kept, by its key."""
        if self._redis is not None:
            names = list(self._redis.client.scan_iter("rkgrade:verdict:*"))
            return {name.decode().rpartition(":")[2]: self._redis.client.get(name) for name in names}  # type: ignore[misc]
        file = self._data / "verdicts" / "verdicts.sqlite"
        if not file.exists():
            return {}
        with contextlib.closing(sqlite3.connect(file)) as connection:
            return dict(connection.execute("SELECT key, entry FROM verdicts"))

    def overwrite(self, key: str, entry: bytes) -> None:
        if self._redis is not None:
            self._redis.client.set(f"rkgrade:verdict:{key}", entry)
            return
        file = self._data / "verdicts" / "verdicts.sqlite"
        with contextlib.closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE verdicts SET entry = ? WHERE key = ?", (entry, key))


@contextlib.contextmanager
def in_process(scratch: Path, *flags: str) -> Iterator[Setting]:
    with data_dir() as data, serving(data, scratch / "log", *ON, "--workers", str(min(2, CORES)), *flags) as server:
        yield Setting(server, server, data, None)


@contextlib.contextmanager
def on_redis(scratch: Path, *flags: str) -> Iterator[Setting]:
    with (
        data_dir() as data,
        redis_server(scratch / "redis") as redis,
        working(redis.url, data, scratch / "host-log", *ON, "--workers", str(min(2, CORES)), *flags) as host,
        serving(data, scratch / "log", redis_url=redis.url) as server,
    ):
        yield Setting(server, host, data, redis)


@pytest.fixture(scope="module", params=["in-process", "rq"])
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    scratch = tmp_path_factory.mktemp("verdicts")
    with (in_process if request.param == "in-process" else on_redis)(scratch) as one:
        yield one


@pytest.fixture
def fresh_problem(a_plus_b: dict[str, Any]) -> dict[str, Any]:
    """A grade on a problem that no other test has."""
    a_plus_b["problem"]["tests"][0]["name"] = str(uuid.uuid4())
    return a_plus_b


def grade(setting: Setting, request: dict[str, Any], **headers: str) -> dict[str, Any]:
    answer = httpx.post(f"{setting.url}/grade", json=request, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def cached(setting: Setting, request: dict[str, Any]) -> bool:
    return bool(grade(setting, request)["timing"]["cached"])


TELLS_OF_RUNS = (
    "import time\nprint(sum(map(int, input().split())))\nprint(time.time_ns(), file=__import__('sys').stderr)\n"
)


def test_the_same_again_is_answered_without_running(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    request = fresh_problem | {"source": TELLS_OF_RUNS, "detail": "outputs"}
    before = metric(setting.url, "rkgrade_tests_total"), setting.lookups("hit"), setting.lookups("miss")
    first = grade(setting, request | {"id": "one"})
    second = grade(setting, request | {"id": "two"})
    assert (first["timing"]["cached"], second["timing"]["cached"]) == (False, True)
    assert (first["id"], second["id"]) == ("one", "two")
    # The same run: nobody prints the same nanosecond twice.
    assert second["tests"][0]["stderr_tail"] == first["tests"][0]["stderr_tail"] != ""
    assert (second["timing"]["compile_s"], second["timing"]["run_s"]) == (0, 0)
    assert second["timing"]["total_s"] > 0
    own = ("id", "timing", "compile")
    assert {name: value for name, value in second.items() if name not in own} == {
        name: value for name, value in first.items() if name not in own
    }
    after = metric(setting.url, "rkgrade_tests_total"), setting.lookups("hit"), setting.lookups("miss")
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 1, 1]
    report = httpx.get(f"{setting.url}/status").json()
    assert report["verdict_cache"] == {"hits": setting.lookups("hit"), "misses": setting.lookups("miss")}
    assert [one["id"] for one in report["grades"][:2]] == ["two", "one"]


def test_every_worker_finds_what_one_has_kept(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    if CORES < 2:
        pytest.skip("one core has one worker")
    grade(setting, fresh_problem)
    assert len(setting.host.workers()) == 2
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: cached(setting, fresh_problem), range(16)))


def test_a_batch_echoes_each_items_own_index(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    grade(setting, fresh_problem)
    items = [fresh_problem | {"id": f"item-{number}"} for number in range(5)]
    lines = httpx.post(f"{setting.url}/grade/batch", json={"items": items}, timeout=60).iter_lines()
    results = [httpx.Response(200, text=line).json() for line in lines]
    assert sorted((one["index"], one["id"]) for one in results) == [(n, f"item-{n}") for n in range(5)]
    assert all(one["timing"]["cached"] for one in results)


def test_a_program_is_the_same_wherever_it_stands(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    assert not cached(setting, fresh_problem)
    source = fresh_problem.pop("source")
    completion = fresh_problem | {"completion": f"So:\n```python\n{source}```\n"}
    assert cached(setting, completion)
    stored = httpx.put(f"{setting.url}/problems", json=fresh_problem["problem"]).json()["id"]
    assert cached(setting, completion | {"problem": stored, "limits": {"cpu_s": 2.0}})


@pytest.mark.parametrize(
    "change",
    [
        {"source": "print(sum(map(int, input().split())) )\n"},
        {"language": "python-exec"},
        {"limits": {"cpu_s": 1.5}},
        {"time_factor": 1.5},
        {"stop": "first_failure"},
        {"taxonomy": "strict"},
        {"length_unit": "chars"},
        {"detail": "outputs"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_any_difference_that_matters_runs(
    setting: Setting, fresh_problem: dict[str, Any], change: dict[str, Any]
) -> None:
    if "language" in change:
        change = {"language": "c", "source": "int main() { return 1; }"}
    grade(setting, fresh_problem)
    assert not cached(setting, fresh_problem | change)
    assert cached(setting, fresh_problem)


@pytest.mark.parametrize(
    ("language", "source", "verdict"),
    [
        ("python", "print('no')", "wrong_answer"),
        ("python", "raise SystemExit(3)", "runtime_error"),
        ("python", "print(", "compile_error"),
        ("c", "int main(void) { return nothing; }", "compile_error"),
    ],
)
def test_failures_that_no_limit_decided_are_kept(
    setting: Setting, fresh_problem: dict[str, Any], language: str, source: str, verdict: str
) -> None:
    request = fresh_problem | {"language": language, "source": source}
    first, second = grade(setting, request), grade(setting, request)
    assert (first["verdict"], second["verdict"]) == (verdict, verdict)
    assert (first["timing"]["cached"], second["timing"]["cached"]) == (False, True)
    assert second["category"] == "correctness_failure"
    if second["compile"] is not None:
        assert second["compile"] == first["compile"] | {"cpu_s": 0, "cached": True}


SLOW = {
    "time_limit": "while True: pass",
    "idle": "import time; time.sleep(60)",
    "memory_limit": "x = [b'x' * 2**20]\nwhile True: x.append(x[0] + b'y')",
    "output_limit": "while True: print('x' * 2**16)",
}


@pytest.mark.parametrize("verdict", SLOW)
def test_what_a_limit_decided_runs_again_each_time(
    setting: Setting, fresh_problem: dict[str, Any], verdict: str
) -> None:
    fresh_problem["problem"]["limits"] = {"cpu_s": 0.5, "wall_s": 1.5, "memory_mb": 64, "output_mb": 1}
    request = fresh_problem | {"source": SLOW[verdict]}
    results = [grade(setting, request) for _ in range(2)]
    assert [(one["verdict"], one["timing"]["cached"]) for one in results] == [(verdict, False)] * 2


def test_what_came_near_its_limit_runs_again_each_time(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    fresh_problem["problem"]["limits"] = {"cpu_s": 1.0, "wall_s": 20.0}
    near = "import time\nwhile time.process_time() < 0.6: pass\nprint(3)\n"
    results = [grade(setting, fresh_problem | {"source": near}) for _ in range(2)]
    assert [(one["verdict"], one["timing"]["cached"]) for one in results] == [("accepted", False)] * 2


def test_good_luck_after_a_limit_is_not_kept(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    """Of a program that is fast at some times and slow at others not the good ones alone are remembered."""
    fresh_problem["problem"]["limits"] = {"cpu_s": 0.3}
    gambles = fresh_problem | {"source": "import time\nwhile int(time.time() / 4) % 2: pass\nprint(3)\n"}

    def at_a_time(slow: bool) -> dict[str, Any]:
        poll(lambda: int(time.time() / 4) % 2 == slow and time.time() % 4 < 1, 10, "such a time begins")
        return grade(setting, gambles)

    assert at_a_time(slow=True)["verdict"] == "time_limit"
    for _ in range(2):
        lucky = at_a_time(slow=False)
        assert (lucky["verdict"], lucky["timing"]["cached"]) == ("accepted", False)


def test_faults_of_the_grader_and_of_checkers_leave_no_trace(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    fresh_problem["problem"]["checker"] = {
        "type": "python",
        "source": "import sys\nassert '3' not in open(sys.argv[2]).read()\nprint(1)\n",
    }
    before = setting.entries()
    first = grade(setting, fresh_problem)
    assert (first["verdict"], first["timing"]["cached"]) == ("checker_error", False)
    provoking = grade(setting, fresh_problem | {"source": "print(33)"})
    assert (provoking["verdict"], provoking["timing"]["cached"]) == ("checker_error", False)
    assert setting.entries() == before


def test_a_worker_that_dies_over_a_grade_leaves_no_trace(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    fresh_problem["problem"]["limits"] = {"cpu_s": 4.0, "wall_s": 30.0}
    request = fresh_problem | {"source": "import time\ntime.sleep(6)\nprint(3)\n"}
    before = setting.entries()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(grade, setting, request)
        for _ in range(3):
            _killed_at_work(setting)
        result = answer.result(60)
    assert (result["verdict"], result["category"]) == ("internal_error", None)
    assert setting.entries() == before
    poll(lambda: len(setting.host.workers()) == min(2, CORES), 30, "the workers are back")
    again = grade(setting, request)
    assert (again["verdict"], again["timing"]["cached"]) == ("accepted", False)


def _killed_at_work(setting: Setting) -> None:
    """Kill the worker that runs the program, once it does."""
    found: list[psutil.Process] = []

    def at_work() -> bool:
        for worker in setting.host.workers():
            with contextlib.suppress(psutil.NoSuchProcess):
                if any(_is_program(one) for one in worker.children(recursive=True)):
                    found.append(worker)
        return bool(found)

    poll(at_work, 20, "the program runs")
    found[0].kill()
    found[0].wait(10)


def _is_program(process: psutil.Process) -> bool:
    """By its uid: in each cell the second, after the warden's. A cell that starts has one for a moment, too."""
    return process.uids().real % 2 == 1 and time.time() - process.create_time() > 0.5


def test_a_grade_that_is_to_be_fresh_runs_and_changes_nothing(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    grade(setting, fresh_problem)
    before = setting.entries()
    hits, misses = setting.lookups("hit"), setting.lookups("miss")
    assert not cached(setting, fresh_problem | {"fresh": True})
    assert (setting.lookups("hit"), setting.lookups("miss")) == (hits, misses)
    assert setting.entries() == before


def test_entries_that_rot_are_run_and_written_anew(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    before = setting.entries()
    grade(setting, fresh_problem)
    [(key, entry)] = setting.entries().items() - before.items()
    # Rot, and the entry of another program under this one's key.
    wrong = fresh_problem | {"source": "print('no')"}
    grade(setting, wrong)
    [(_, other)] = setting.entries().items() - {**before, key: entry}.items()
    for spoiled in (other, b"", b"\0" * len(entry), entry[:-3]):
        setting.overwrite(key, spoiled)
        result = grade(setting, fresh_problem)
        assert (result["verdict"], result["timing"]["cached"]) == ("accepted", False)
        assert cached(setting, fresh_problem)


def test_nothing_of_a_client_is_in_what_another_is_told(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    secret = f"name-of-a-client-{uuid.uuid4()}"
    first = httpx.post(
        f"{setting.url}/grade",
        json=fresh_problem | {"id": secret},
        headers={"X-Client-Id": secret, "Idempotency-Key": secret},
        timeout=60,
    )
    assert first.json()["id"] == secret
    second = httpx.post(f"{setting.url}/grade", json=fresh_problem, headers={"X-Client-Id": "other"}, timeout=60)
    assert second.json()["timing"]["cached"]
    assert second.json()["id"] is None
    assert secret not in second.text
    assert not any(secret.encode() in entry for entry in setting.entries().values())


def test_jobs_are_answered_from_there_too(setting: Setting, fresh_problem: dict[str, Any]) -> None:
    grade(setting, fresh_problem)
    job = httpx.post(f"{setting.url}/jobs", json=fresh_problem | {"id": "mine"}).json()["id"]
    poll(lambda: httpx.get(f"{setting.url}/jobs/{job}").json()["status"] == "done", 20, "the job is done")
    result = httpx.get(f"{setting.url}/jobs/{job}").json()["result"]
    assert (result["id"], result["timing"]["cached"]) == ("mine", True)


@pytest.mark.parametrize("engine", [in_process, on_redis])
def test_one_setting_turns_it_off(
    engine: Callable[..., contextlib.AbstractContextManager[Setting]], tmp_path: Path, fresh_problem: dict[str, Any]
) -> None:
    with engine(tmp_path, "--no-verdict-cache") as off:
        assert [cached(off, fresh_problem) for _ in range(3)] == [False] * 3
        assert (off.lookups("hit"), off.lookups("miss")) == (0, 0)


def test_results_outlive_the_service_and_readiness_does_not_rest_on_them(
    tmp_path: Path, fresh_problem: dict[str, Any]
) -> None:
    with data_dir() as data:
        with serving(data, tmp_path / "log", *ON) as server:
            httpx.post(f"{server.url}/grade", json=fresh_problem, timeout=60)
            assert server.end() == 0
        with serving(data, tmp_path / "log", *ON) as server:
            # A+B ran in each language.
            assert metric(server.url, "rkgrade_tests_total") == 2
            assert metric(server.url, "rkgrade_verdict_lookups_total") == 0
            assert httpx.post(f"{server.url}/grade", json=fresh_problem, timeout=60).json()["timing"]["cached"]
            assert server.end() == 0
        # Nothing is kept for longer than it may be.
        with serving(data, tmp_path / "log", *ON, "--verdict-cache-s", "1") as server:
            httpx.post(f"{server.url}/grade", json=fresh_problem, timeout=60)

            def lapsed() -> bool:
                return not httpx.post(f"{server.url}/grade", json=fresh_problem, timeout=60).json()["timing"]["cached"]

            poll(lapsed, 10, "it is too old")


def test_without_control_groups_nothing_is_kept(tmp_path: Path, fresh_problem: dict[str, Any]) -> None:
    with data_dir() as data, serving(data, tmp_path / "log", *ON, "--insecure-no-cgroup") as server:
        for _ in range(2):
            result = httpx.post(f"{server.url}/grade", json=fresh_problem, timeout=60).json()
            assert (result["grader"]["secure"], result["timing"]["cached"]) == (False, False)
        assert not (data / "verdicts").exists()


def test_a_redis_that_came_back_empty_is_filled_anew(tmp_path: Path, fresh_problem: dict[str, Any]) -> None:
    with on_redis(tmp_path) as setting:
        grade(setting, fresh_problem)
        assert cached(setting, fresh_problem)
        assert setting._redis is not None
        setting._redis.client.flushall()
        result = grade(setting, fresh_problem)
        assert (result["verdict"], result["timing"]["cached"]) == ("accepted", False)
        assert cached(setting, fresh_problem)


def test_results_give_way_to_the_queue_where_redis_is_out_of_memory(
    tmp_path: Path, fresh_problem: dict[str, Any]
) -> None:
    with on_redis(tmp_path) as setting:
        assert setting._redis is not None
        redis = setting._redis.client
        outputs = fresh_problem | {"detail": "outputs"}
        for number in range(30):
            noise = f"import random\nrandom.seed({number})\nprint(random.randbytes(3000).hex())\n"
            assert grade(setting, outputs | {"source": noise})["verdict"] == "wrong_answer"
        kept = int(redis.get("rkgrade:verdicts:bytes"))
        assert len(setting.entries()) == 30
        assert kept > 30 * 2000
        redis.config_set("maxmemory", int(redis.info("memory")["used_memory"]) - 1)
        try:
            assert grade(setting, fresh_problem)["verdict"] == "accepted"
        finally:
            redis.config_set("maxmemory", "0")
        assert len(setting.entries()) <= 1
