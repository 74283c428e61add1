"""A store in S3: problems and compiled programs through a server of that protocol, and what becomes of it."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.compiling import SharedProgram
from service.stores.compiled import CompiledStore
from service.stores.problems import StoreUnreachable, UnknownProblem, problem_id
from service.stores.remote import Remote
from service.stores.shared import SharedProblems
from tests.data_dirs import data_dir
from tests.redis_server import RedisServer, redis_server
from tests.s3_server import BUCKET, S3Server, s3_server, silent_server
from tests.serving import Server, metric, poll, serving, working

C_SUM = '#include <stdio.h>\nint main(void) { int a, b; scanf("%%d%%d", &a, &b); printf("%%d", a + b); }\n/* %s */\n'
C_WRONG = '#include <stdio.h>\nint main(void) { puts("0"); }\n/* %s */\n'

FLAGS = ("--workers", "1", "--languages", "python,c")


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def own_s3(tmp_path: Path) -> Iterator[S3Server]:
    """One that the test may end."""
    with s3_server(tmp_path / "s3") as server:
        yield server


def place() -> str:
    """In the bucket, that nobody else uses."""
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


# ---------------------------------------------------------------------------------------------------------------
# The store by itself


@contextlib.contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        # Its instances are kept by what they were opened with, which variables are no part of.
        import s3fs  # type: ignore[import-untyped]

        s3fs.S3FileSystem.clear_instance_cache()
        yield
        s3fs.S3FileSystem.clear_instance_cache()


def test_files_are_put_and_got_whole_and_in_part(s3: S3Server) -> None:
    with variables(s3.environment):
        there = Remote(place())
        assert (there.size("a/b"), there.read("a/b")) == (None, None)
        there.write("a/b", b"first")
        there.write("a/b", b"content")
        assert (there.size("a/b"), there.read("a/b")) == (7, b"content")
        assert (there.read("a/b", most_bytes=3), there.read("a/b", most_bytes=100)) == (b"con", b"content")
        large = os.urandom(2**20) * 20
        there.write("large", large)
        assert there.read("large") == large


def test_problems_are_shared_and_checked(s3: S3Server, tmp_path: Path) -> None:
    content = b'{"kind":"stdio","tests":[]}'
    with variables(s3.environment):
        url = place()
        one, other = (SharedProblems(tmp_path / name, url) for name in ("one", "other"))
        with pytest.raises(UnknownProblem):
            other.get(problem_id(content))
        assert one.put([content]) == (problem_id(content), True)
        assert other.put([content]) == (problem_id(content), False)
        assert SharedProblems(tmp_path / "third", url).get(problem_id(content)) == content


def test_compiled_programs_are_bounded_there(s3: S3Server) -> None:
    with variables(s3.environment):
        url = place()
        Remote(url).write("ab/a problem.json", os.urandom(300_000))
        bounded = CompiledStore(url, lambda: b"s" * 32, limit_bytes=200_000)
        names = [f"{number:064x}" for number in range(15)]
        for name in names:
            bounded.put(name, SharedProgram(os.urandom(20_000), ""))
        left = [name for name in names if bounded.get(name) is not None]
        assert bounded.take_fault() is None
        # 20 KiB each. The store tells of whole seconds: which of those of one second went, nobody knows.
        assert len(left) in (8, 9)
        assert Remote(url).size("ab/a problem.json") == 300_000


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE"}, "refuses these credentials"),
        ({"AWS_SECRET_ACCESS_KEY": "not-the-secret"}, "refuses these credentials"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "nobody answers"),
    ],
    ids=["key", "secret", "nobody"],
)
def test_what_is_wrong_is_said(s3: S3Server, values: dict[str, str], words: str) -> None:
    with variables(s3.environment | values):
        there = Remote(place())
        for ask in (lambda: there.read("a"), lambda: there.size("a"), lambda: there.write("a", b"")):
            with pytest.raises(StoreUnreachable, match=words):
                ask()


def test_a_bucket_that_is_not_there_is_said_and_not_made(s3: S3Server) -> None:
    with (
        variables(s3.environment),
        pytest.raises(StoreUnreachable, match="a bucket, is not there"),
    ):
        Remote("s3://misspelt/problems").write("a", b"")
    assert [one["Name"] for one in s3.objects().list_buckets()["Buckets"]] == [BUCKET]


def test_a_server_that_says_nothing_is_given_up(s3: S3Server) -> None:
    with silent_server() as silent, variables(s3.environment | {"AWS_ENDPOINT_URL": silent}):
        begun_s = time.monotonic()
        with pytest.raises(StoreUnreachable, match="not answer in time"):
            Remote(place()).size("a")
        assert time.monotonic() - begun_s < 30
        begun_s = time.monotonic()
        with pytest.raises(StoreUnreachable, match="not answer in time"):
            Remote(place(), within_s=2.0).read("a")
        assert time.monotonic() - begun_s < 5


# ---------------------------------------------------------------------------------------------------------------
# Graders on it


@contextlib.contextmanager
def grading(
    scratch: Path, redis: RedisServer, url: str, values: Mapping[str, str], name: str
) -> Iterator[tuple[Server, Path]]:
    """An API and a host with one worker, with a data directory of their own: as on another machine."""
    with (
        data_dir() as data,
        working(redis.url, data, scratch / f"{name}-host", *FLAGS, "--store-url", url, environment=values),
        serving(
            data, scratch / name, "--store-url", url, redis_url=redis.url, environment=values, until_ready=True
        ) as server,
    ):
        yield server, data


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def c_sum(a_plus_b: dict[str, Any]) -> dict[str, Any]:
    """A grade that is accepted, of a program that nobody has compiled yet."""
    return a_plus_b | {"language": "c", "source": C_SUM % uuid.uuid4()}


def grade(server: Server, request: dict[str, Any]) -> dict[str, Any]:
    answer = httpx.post(f"{server.url}/grade", json=request, timeout=90)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def compiles(server: Server, cache: str) -> int:
    return int(metric(server.url, f'rkgrade_compiles_total{{cache="{cache}",language="c"}}'))


@pytest.mark.jail
def test_one_host_compiles_and_another_fetches_and_nobody_is_fooled(
    s3: S3Server, redis: RedisServer, tmp_path: Path, c_sum: dict[str, Any]
) -> None:
    url, values = place(), s3.environment
    folder = url.removeprefix(f"s3://{BUCKET}/")
    wrong = c_sum | {"source": C_WRONG % uuid.uuid4()}
    with grading(tmp_path, redis, url, values, "one") as (server, _):
        stored = httpx.put(f"{server.url}/problems", json=c_sum["problem"]).json()["id"]
        before = set(s3.names(f"{folder}/programs"))
        first = grade(server, c_sum | {"problem": stored})
        assert (first["verdict"], first["compile"]["cached"]) == ("accepted", False)
        [right] = set(s3.names(f"{folder}/programs")) - before
        assert grade(server, wrong)["verdict"] == "wrong_answer"
        [of_the_wrong] = set(s3.names(f"{folder}/programs")) - before - {right}
        assert compiles(server, "shared") == 0
    digest = stored.removeprefix("sha256:")
    assert f"{folder}/{digest[:2]}/{digest[2:]}.json" in s3.names(folder)
    with grading(tmp_path, redis, url, values, "two") as (server, data):
        shared = compiles(server, "shared")
        second = grade(server, c_sum | {"problem": stored})
        assert (second["verdict"], second["compile"]["cached"]) == ("accepted", True)
        assert second["compile"]["message"] == first["compile"]["message"]
        assert compiles(server, "shared") == shared + 1
        # From here on this host has both.
        assert grade(server, c_sum | {"problem": stored, "fresh": True})["compile"]["cached"]
        assert compiles(server, "shared") == shared + 1
        assert len(list((data / "problems").glob("??/*.json"))) >= 1
    # Whoever may write to the bucket has the wrong program's entry pass for the right one's, and the other way round.
    entries = s3.read(right), s3.read(of_the_wrong)
    s3.write(right, entries[1])
    s3.write(of_the_wrong, entries[0])
    with grading(tmp_path, redis, url, values, "three") as (server, _):
        shared = compiles(server, "shared")
        for request, verdict in ((c_sum, "accepted"), (wrong, "wrong_answer")):
            result = grade(server, request)
            assert (result["verdict"], result["compile"]["cached"]) == (verdict, False)
        assert compiles(server, "shared") == shared
    assert {right, of_the_wrong} <= set(s3.names(folder))
    assert s3.read(right) != entries[1]


@pytest.mark.jail
def test_a_store_that_goes_and_comes_back_costs_no_verdict(
    own_s3: S3Server, redis: RedisServer, tmp_path: Path, c_sum: dict[str, Any]
) -> None:
    values = own_s3.environment
    with grading(tmp_path, redis, place(), values, "one") as (server, _):
        stored = httpx.put(f"{server.url}/problems", json=c_sum["problem"]).json()["id"]
        known = c_sum | {"problem": stored}
        assert grade(server, known)["verdict"] == "accepted"
        own_s3.end()
        # What this host knows it goes on grading; what it does not compile elsewhere it compiles.
        new = known | {"source": C_SUM % uuid.uuid4()}
        assert grade(server, new)["verdict"] == "accepted"
        assert metric(server.url, 'rkgrade_cache_faults_total{cache="programs"}') == 1
        c_sum["problem"]["tests"][0]["name"] = str(uuid.uuid4())
        refused = httpx.post(f"{server.url}/grade", json=c_sum, timeout=60)
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:rkgrade:error:unavailable")
        assert "nobody answers there" in refused.json()["detail"]
        refused = httpx.put(f"{server.url}/problems", json=c_sum["problem"], timeout=60)
        assert refused.status_code == 503
        own_s3.start()
        assert metric(server.url, 'rkgrade_grades_total{category="none",language="c",verdict="internal_error"}') == 0
    assert "a cache that is shared fails" in (tmp_path / "one-host").read_text()


@pytest.mark.jail
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "not-the-secret-of-anybody"}, "refuses these credentials"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "nobody answers there"),
        ({"AWS_ENDPOINT_URL": "silent"}, "does not answer in time"),
    ],
    ids=["secret", "nobody", "silent"],
)
def test_a_store_that_cannot_be_used_is_told_from_the_start(
    s3: S3Server, tmp_path: Path, a_plus_b: dict[str, Any], wrong: dict[str, str], words: str
) -> None:
    with contextlib.ExitStack() as stack:
        if "silent" in wrong.values():
            wrong = {"AWS_ENDPOINT_URL": stack.enter_context(silent_server())}
        data = stack.enter_context(data_dir())
        server = stack.enter_context(
            serving(
                data, tmp_path / "log", *FLAGS, "--store-url", place(),
                environment=s3.environment | wrong, until_ready=False,
            )
        )  # fmt: skip

        def reasons() -> str:
            return str(httpx.get(f"{server.url}/health/ready", timeout=60).json()["reasons"])

        poll(lambda: words in reasons(), 60, words)
        refused = httpx.post(f"{server.url}/grade", json=a_plus_b, timeout=60)
        assert refused.status_code == 503
        assert words in refused.json()["detail"]
        assert wrong.get("AWS_SECRET_ACCESS_KEY", "http://") not in refused.text + reasons()


@pytest.mark.jail
def test_hosts_without_redis_share_programs_under_a_secret_that_they_are_given(
    tmp_path: Path, c_sum: dict[str, Any]
) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text("of two hosts, and of nobody else's\n")
    flags = (*FLAGS, "--store-url", f"file://{tmp_path}/store")
    found: dict[str, bool] = {}
    for name, given in (("one", True), ("two", True), ("stranger", False)):
        with data_dir() as data:
            more = ("--store-secret-file", str(secret)) if given else ()
            with serving(data, tmp_path / name, *flags, *more) as server:
                result = grade(server, c_sum)
                assert result["verdict"] == "accepted"
                found[name] = result["compile"]["cached"]
                assert server.end() == 0
    assert found == {"one": False, "two": True, "stranger": False}
