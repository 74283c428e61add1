"""Both clients: a real grader, graders in trouble, connections that are kept, and an end that waits for nobody."""

from __future__ import annotations

import socket
import threading
from collections import Counter

import pytest

from rl_client import exchange, patience
from rl_client.encoded import EncodedProblem
from rl_client.errors import GaveUp, GraderUnfit, GraderUnreachable, Refused, TokenRefused, UnknownProblem
from service.contract import GradeRequest, StdioProblem, StdioTest, TokensChecker, Verdict, problem_id
from tests.rl_client.answering import Asked, answering
from tests.rl_client.clients import Connect
from tests.serving import Server

SUM = StdioProblem(kind="stdio", tests=(StdioTest(input="1 2\n", output="3\n"),))
ENCODED = EncodedProblem.of(SUM)
RIGHT = GradeRequest(problem=ENCODED.id, language="python", source="print(sum(map(int, input().split())))")

NOT_FOUND = {"type": "urn:rkgrade:error:not-found", "detail": "no such problem"}


def test_an_encoded_problem_has_the_contracts_own_id() -> None:
    problem = SUM.model_copy(update={"checker": TokensChecker(type="tokens", case_sensitive=False)})
    assert EncodedProblem.of(problem).id == problem_id(problem)


@pytest.mark.jail
def test_a_real_grader_stores_and_grades(connect: Connect, grader: Server) -> None:
    with connect(grader.url + "/") as client:
        client.check()
        names = {name for one in client.languages() for name in (one.id, *one.aliases)}
        client.put_problem(ENCODED)
        right = client.grade(RIGHT)
        wrong = client.grade(RIGHT.model_copy(update={"source": "print(4)"}))

    assert {"python", "py3", "cpp"} <= names
    assert (right.problem_id, right.verdict, right.category) == (ENCODED.id, Verdict.ACCEPTED, "correct")
    assert (wrong.verdict, wrong.rewards["R_inf"]) == (Verdict.WRONG_ANSWER, 0)


@pytest.mark.jail
def test_a_real_grader_refuses_with_the_field_at_fault(connect: Connect, grader: Server) -> None:
    unknown = GradeRequest(problem="sha256:" + "0" * 64, language="python", source="1")
    with connect(grader.url) as client:
        with pytest.raises(Refused, match=r"refused it \(422\): language: ") as refused:
            client.grade(RIGHT.model_copy(update={"language": "cobol"}))
        with pytest.raises(UnknownProblem):
            client.grade(unknown)
    assert refused.value.field == "language"


def test_a_problem_is_sent_once(connect: Connect) -> None:
    asked: Counter[str] = Counter()

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        asked[one.method] += 1
        return 200, {}, {"id": ENCODED.id}

    with answering(reply) as url, connect(url) as client:
        for _ in range(3):
            client.put_problem(ENCODED)
        client.put_problem(ENCODED, again=True)
    assert asked["PUT"] == 2


def test_connections_are_kept_and_bounded(connect: Connect) -> None:
    """Ten threads ask, two at once, and over the same two connections all the time."""
    pair = threading.Barrier(2)
    connections: set[int] = set()

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        connections.add(one.connection)
        pair.wait(10)
        return 200, {}, []

    with answering(reply) as url, connect(url, connections=2) as client:
        threads = [threading.Thread(target=client.languages) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(connections) == 2


def test_a_busy_grader_is_asked_again(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_DELAY_S", 0.01)
    torn = {"Content-Encoding": "gzip"}
    answers = iter([(429, {"Retry-After": "0"}), (503, {}), (500, {}), (502, {}), (504, {}), (408, {}), (200, torn)])

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        status, headers = next(answers, (200, {}))
        return status, headers, []

    with answering(reply) as url, connect(url) as client:
        assert client.languages() == ()
    assert next(answers, None) is None


def test_waiting_is_told_at_once_and_then_once_a_minute(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(patience, "FIRST_DELAY_S", 0.01)
    answers: list[tuple[int, dict[str, str], object]] = [*[(503, {}, {})] * 3, (200, {}, [])]
    coming = iter(answers * 3)
    with answering(lambda _: next(coming)) as url, connect(url) as client:
        trouble = "it answers 503 Service Unavailable"
        told = f"the grader at {url} does not take GET /languages: {trouble}; it is asked again for 300 s"
        client.languages()
        client.languages()
        assert caplog.messages == [told]
        monkeypatch.setattr(exchange, "_TOLD_EVERY_S", 0.0)
        client.languages()
        assert caplog.messages == [told] * 4


def test_patience_ends_with_the_trouble_in_words(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_DELAY_S", 0.01)
    with (
        answering(lambda _: (503, {}, {})) as url,
        connect(url, patience_s=0.1) as client,
        pytest.raises(GraderUnreachable, match="did not take POST /grade for 0 s: it answers 503 Service Unavailable"),
    ):
        client.grade(RIGHT)


def test_nothing_listens(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with connect(url) as client, pytest.raises(GraderUnreachable, match=f"no grader answers at {url}: "):
        client.check()


@pytest.mark.parametrize(
    "url",
    ["grader:8000", "no://where", "grader", "", "http://", "https://:8000", "http://grader:port", "http://a/?b=c",
     "http://a#b", "http://a b", "http://a:99999999", "http://[::1"],
)  # fmt: skip
def test_what_is_no_address_is_said_before_anything_is_asked(connect: Connect, url: str) -> None:
    with pytest.raises(ValueError, match="url is "):
        connect(url)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"connections": 0}, "connections is 0"),
        ({"patience_s": -1.0}, "patience_s is -1"),
        ({"patience_s": float("nan")}, "patience_s is nan"),
        ({"compression": "brotli"}, "compression is auto, zstd, gzip or none"),
    ],
)
def test_a_client_that_could_not_ask(connect: Connect, options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        connect("http://127.0.0.1:9", **options)


@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (404, {"detail": "Not Found"}, "answers 404: Not Found"),
        (507, {"detail": "no\nroom"}, "answers 507: no room"),
        (200, {"verdict": "accepted"}, "answers outside the contract: problem_id: Field required"),
        (200, [], "answers outside the contract"),
    ],
)
def test_what_is_no_grader_of_this_contract(connect: Connect, status: int, content: object, words: str) -> None:
    with answering(lambda _: (status, {}, content)) as url, connect(url) as client, pytest.raises(GraderUnfit) as unfit:
        client.grade(RIGHT)
    assert words in str(unfit.value)


@pytest.mark.parametrize(
    ("status", "content", "kind"),
    [
        (400, {}, Refused),
        (413, {}, Refused),
        (422, {"detail": "no", "field": "x"}, Refused),
        (404, NOT_FOUND, UnknownProblem),
    ],
)
def test_what_is_the_requests_own_fault(connect: Connect, status: int, content: object, kind: type[Refused]) -> None:
    with answering(lambda _: (status, {}, content)) as url, connect(url) as client, pytest.raises(Refused) as refused:
        client.grade(RIGHT)
    assert (type(refused.value), refused.value.status) == (kind, status)


def test_a_token_goes_with_every_request(connect: Connect) -> None:
    asked: list[tuple[str, str | None]] = []

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        asked.append((one.path, one.authorization))
        return 200, {}, []

    with answering(reply) as url:
        with connect(url, token="abc") as client:
            client.check()
        with connect(url) as client:
            client.languages()
    assert asked == [("/health/live", "Bearer abc"), ("/languages", "Bearer abc"), ("/languages", None)]


def test_a_grader_that_asks_for_another_token(connect: Connect) -> None:
    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        return (200, {}, {}) if one.path == "/health/live" else (401, {}, {"detail": "no such token"})

    with answering(reply) as url, connect(url, token="abc") as client:
        for ask in (client.check, client.languages, lambda: client.grade(RIGHT)):
            with pytest.raises(TokenRefused, match="asks for a token: no such token"):
                ask()


def test_who_closes_waits_for_nobody(connect: Connect) -> None:
    """One request is on its way and one waits to be sent again; both end by themselves, and none is begun any more."""
    asked, over = threading.Event(), threading.Event()

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        if one.method == "GET":
            return 503, {"Retry-After": "30"}, {}
        asked.set()
        over.wait(10)
        return 200, {}, {"id": ENCODED.id}

    with answering(reply) as url, connect(url) as client:
        ends: dict[str, Exception | None] = {}

        def do(name: str) -> None:
            try:
                client.languages() if name == "waiting" else client.put_problem(ENCODED)
            except GaveUp as error:
                ends[name] = error
            else:
                ends[name] = None

        threads = [threading.Thread(target=do, args=(name,)) for name in ("waiting", "sent")]
        for thread in threads:
            thread.start()
        assert asked.wait(10)
        client.close()
        threads[0].join(10)
        over.set()
        threads[1].join(10)
        with pytest.raises(GaveUp):
            client.languages()
    assert ends["sent"] is None
    assert isinstance(ends["waiting"], GaveUp)
