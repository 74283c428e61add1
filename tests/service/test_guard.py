"""Who gets past the door: clients with a token, and no page that a browser was tricked into."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Serve
from tests.service.test_bad_input import assert_refused
from tests.serving import RKGRADE, Server, poll, serving

pytestmark = pytest.mark.jail

TOKEN, OTHER = "trainer-0123456789abcdef", "other-0123456789abcdefgh"
FLAGS = ("--workers", "1", "--languages", "python")
EXAMPLE = Path(__file__).parents[2] / "examples/two-sum-count"
OPEN = {"/health/live", "/health/ready"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def tokens_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.touch(0o600)
    path.write_text(f"trainer {TOKEN}\n")
    return path


@pytest.fixture(scope="module")
def guarded(grader_data_dir: Path, tokens_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("guarded") / "log"
    flags = (*FLAGS, "--tokens-file", str(tokens_file), "--access-log", "--log-level", "debug")
    with serving(grader_data_dir, log, *flags) as server:
        yield server
        assert server.end() == 0


def routes(url: str) -> list[tuple[str, str]]:
    document = httpx.get(f"{url}/openapi.json").json()
    return [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]


def test_every_route_but_health_asks_for_a_token(guarded: Server) -> None:
    for method, path in (*routes(guarded.url), ("GET", "/nothing"), ("GET", "/health/live/"), ("GET", "/page")):
        answer = httpx.request(method, f"{guarded.url}{path}")
        if path in OPEN:
            assert answer.status_code == 200
        else:
            assert_refused(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"] == 'Bearer realm="rkgrade"'


@pytest.mark.parametrize(
    "sent",
    [
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer trainer {TOKEN}",
        f"Bearer {TOKEN} {TOKEN}",
        f"Bearer {TOKEN}, Bearer {TOKEN}",
        "Bearer",
        "",
        TOKEN,
        f"Basic {TOKEN}",
        "Bearer trainer",
        "Bearer \xff",
    ],
)
def test_what_is_no_token_of_the_file_is_refused(guarded: Server, sent: str) -> None:
    answer = httpx.get(f"{guarded.url}/languages", headers={"Authorization": sent.encode("latin-1")})
    assert_refused(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"] == 'Bearer realm="rkgrade", error="invalid_token"'


def test_two_tokens_at_once_are_none(guarded: Server) -> None:
    headers = [("Authorization", f"Bearer {TOKEN}")] * 2
    assert_refused(httpx.get(f"{guarded.url}/languages", headers=headers), 401, "unauthorized")


def test_a_token_in_the_address_is_none(guarded: Server) -> None:
    for query in (f"access_token={TOKEN}", f"token={TOKEN}"):
        assert_refused(httpx.get(f"{guarded.url}/languages?{query}"), 401, "unauthorized")


def test_a_client_with_a_token_is_served_and_told_apart_by_its_name_alone(
    guarded: Server, a_plus_b: dict[str, Any]
) -> None:
    with httpx.Client(base_url=guarded.url, headers=bearer(TOKEN), timeout=60) as client:
        graded = client.post("/grade", json=a_plus_b, headers={"X-Request-ID": "told-apart"})
        assert graded.json()["verdict"] == "accepted"
        metrics = client.get("/metrics").text
    assert re.search(r'^rkgrade_requests_total\{client="trainer"\} [1-9]', metrics, re.M)
    poll(lambda: "told-apart" in guarded.log.read_text(), 5, "the request is logged")
    [line] = [line for line in guarded.log.read_text().splitlines() if "told-apart" in line]
    assert re.search(r"client\S*=\S*trainer", line)
    assert TOKEN not in guarded.log.read_text() + metrics


def test_the_scheme_is_called_what_one_likes(guarded: Server) -> None:
    assert httpx.get(f"{guarded.url}/languages", headers={"Authorization": f"bearer  {TOKEN}"}).status_code == 200


def test_a_client_without_a_token_gets_to_read_why_while_it_still_sends(guarded: Server) -> None:
    def body() -> Iterator[bytes]:
        for _ in range(100):
            yield bytes(2**20)

    assert_refused(httpx.put(f"{guarded.url}/problems", content=body(), timeout=60), 401, "unauthorized")


def test_pipelined_requests_are_asked_one_by_one(guarded: Server) -> None:
    host, _, port = guarded.url.removeprefix("http://").partition(":")
    heads = [b"GET /languages HTTP/1.1\r\nHost: a\r\n%s\r\n" % extra for extra in (
        b"", f"Authorization: Bearer {TOKEN}\r\n".encode(), b"")]  # fmt: skip
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(b"".join(heads * 50) + b"GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answers = b"".join(iter(lambda: connection.recv(2**16), b""))
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"401", b"200", b"401"] * 50 + [b"200"]


def test_the_document_says_what_needs_a_token(guarded: Server, grader_url: str) -> None:
    document = httpx.get(f"{guarded.url}/openapi.json").json()
    assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["security"] == ([] if path in OPEN else [{"token": []}])
    free = httpx.get(f"{grader_url}/openapi.json").json()
    assert all(one["security"] == [] for methods in free["paths"].values() for one in methods.values())


def test_metrics_may_be_left_open(grader_data_dir: Path, tokens_file: Path, tmp_path: Path) -> None:
    flags = (*FLAGS, "--tokens-file", str(tokens_file), "--metrics-without-token")
    with serving(grader_data_dir, tmp_path / "log", *flags) as server:
        assert "rkgrade_grades_total" in httpx.get(f"{server.url}/metrics").text
        assert_refused(httpx.get(f"{server.url}/languages"), 401, "unauthorized")


def test_tokens_come_and_go_while_the_service_runs(grader_data_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text(f"trainer {TOKEN}\n")

    def status(token: str) -> int:
        return httpx.get(f"{server.url}/languages", headers=bearer(token)).status_code

    with serving(grader_data_dir, tmp_path / "log", *FLAGS, "--tokens-file", str(file)) as server:
        assert (status(TOKEN), status(OTHER)) == (200, 401)
        file.write_text(f"other {OTHER}\n")
        poll(lambda: (status(TOKEN), status(OTHER)) == (401, 200), 10, "the new tokens hold")
        file.write_text("spoiled")
        server.process.send_signal(signal.SIGHUP)
        poll(lambda: "the tokens file is refused" in server.log.read_text(), 10, "the refusal is logged")
        assert (status(TOKEN), status(OTHER)) == (401, 200)
        assert not any(token in server.log.read_text() for token in (TOKEN, OTHER))
        assert server.end() == 0


def test_problems_are_imported_with_the_token_of_a_file_or_of_the_environment(
    guarded: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def imported(*options: str) -> subprocess.CompletedProcess[str]:
        command = [str(RKGRADE), "import", "kattis", str(EXAMPLE), "--to", guarded.url, *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    monkeypatch.delenv("RKGRADE_TOKEN", raising=False)
    none = imported()
    assert none.returncode == 3
    assert "asks for a token" in none.stderr
    (tmp_path / "token").write_text(TOKEN)
    assert imported("--token-file", str(tmp_path / "token")).returncode == 0
    monkeypatch.setenv("RKGRADE_TOKEN", TOKEN)
    assert imported().returncode == 0
    monkeypatch.setenv("RKGRADE_TOKEN", OTHER)
    other = imported()
    assert other.returncode == 3
    assert "not good here" in other.stderr
    assert OTHER not in other.stderr


def start(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(RKGRADE), "serve", *flags], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_without_a_token_it_listens_on_this_machine_alone(host: str, grader_data_dir: Path) -> None:
    done = start("--host", host, "--port", "0", "--data-dir", str(grader_data_dir))
    assert done.returncode == 2
    assert f"other machines can reach {host}" in done.stderr
    assert "--tokens-file" in done.stderr
    assert "--insecure-no-token" in done.stderr


def test_a_tokens_file_that_is_refused_ends_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"trainer {TOKEN}\n")
    (tmp_path / "tokens").chmod(0o644)
    done = start("--port", "0", "--tokens-file", str(tmp_path / "tokens"))
    assert done.returncode == 2
    assert "--tokens-file / RKGRADE_TOKENS_FILE" in done.stderr
    assert "chmod it to 0600" in done.stderr
    assert TOKEN not in done.stderr


def test_it_listens_elsewhere_where_it_is_told_to(serve: Serve) -> None:
    flags = (*FLAGS, "--host", "0.0.0.0", "--insecure-no-token", "--allowed-hosts", "api, grader.example")
    with serve(*flags) as server:
        assert "no token" in server.log.read_text()
        port = server.url.rpartition(":")[2]
        for host in ("api", f"api:{port}", "GRADER.example.", "192.0.2.7", "[2001:db8::1]:80"):
            assert httpx.get(f"{server.url}/languages", headers={"Host": host}).status_code == 200
        answer = httpx.get(f"{server.url}/languages", headers={"Host": "evil.example"})
        assert_refused(answer, 421, "misdirected")


# What a page in a developer's browser could try on a grader at the loopback address, which asks for no token.


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "[evil.example]", ""],
)
def test_a_name_that_was_bound_anew_to_this_address_is_refused(grader_url: str, host: str) -> None:
    for path in ("/languages", "/health/live", "/metrics", "/openapi.json"):
        assert_refused(httpx.get(f"{grader_url}{path}", headers={"Host": host}), 421, "misdirected")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:9", "[::1]:8000", "localhost."])
def test_this_machine_by_any_of_its_names_is_served(grader_url: str, host: str) -> None:
    assert httpx.get(f"{grader_url}/languages", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "whatever comes to be"},
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_a_page_of_another_site_runs_nothing(
    grader_url: str, a_plus_b: dict[str, Any], headers: dict[str, str], kind: str
) -> None:
    for method, path in (("POST", "/grade"), ("POST", "/grade/batch"), ("PUT", "/problems"), ("GET", "/languages")):
        answer = httpx.request(method, f"{grader_url}{path}", json=a_plus_b, headers=headers | {"Content-Type": kind})
        assert_refused(answer, 403, "cross-site")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_what_a_form_can_send_is_no_json(grader_url: str, a_plus_b: dict[str, Any], kind: str) -> None:
    answer = httpx.post(f"{grader_url}/grade", json=a_plus_b, headers={"Content-Type": kind})
    assert_refused(answer, 415, "unsupported-type")


@pytest.mark.parametrize("sent", [{"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {}])
def test_a_page_of_its_own_is_served(grader_url: str, a_plus_b: dict[str, Any], sent: dict[str, str]) -> None:
    headers = {"Origin": grader_url, "Content-Type": "application/json; charset=utf-8"} | sent
    answer = httpx.post(f"{grader_url}/grade", json=a_plus_b, headers=headers, timeout=60)
    assert answer.json()["verdict"] == "accepted"


def test_no_other_origin_is_ever_allowed_to_read(grader_url: str) -> None:
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answers = [httpx.options(f"{grader_url}/grade", headers=preflight)]
    answers += [httpx.get(f"{grader_url}{path}", headers=preflight) for path in ("/languages", "/metrics")]
    for answer in answers:
        assert answer.status_code >= 400
        assert [name for name in answer.headers if name.startswith("access-control")] == []


@pytest.mark.parametrize("path", ["/languages", "/nothing", "/health/live", "/problems/none", "/metrics"])
def test_every_answer_is_inert_in_a_browser(grader_url: str, path: str) -> None:
    headers = httpx.get(f"{grader_url}{path}").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'; frame-ancestors 'none'" in headers["content-security-policy"]


def test_nobody_is_sent_where_the_host_header_says(grader_url: str) -> None:
    for path in ("/languages/", "//evil.example/languages", "/problems/"):
        answer = httpx.get(f"{grader_url}{path}")
        assert (answer.status_code, "location" in answer.headers) == (404, False)
