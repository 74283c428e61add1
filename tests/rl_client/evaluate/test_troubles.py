"""Servers and graders in trouble, and commands that cannot be followed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rl_client import patience
from rl_client.evaluate.rows import Grade
from rl_client.evaluate.sampling import Chunk, chunks
from rl_client.evaluate.tasks import Task
from service.contract import Verdict, parse_problem, problem_id
from tests.rl_client.answering import Asked, Reply, answering
from tests.rl_client.evaluate.models import RIGHT, WRONG, Model, lines, report, rkgrade, row, write
from tests.rl_client.results import graded, provoked, unrun

LANGUAGES = [{"id": "python", "name": "Python", "version": "3", "aliases": ["py3"], "suffix": ".py"}]
ROWS = [row("first", "easy"), row("second", "easy", factor=3), row("third", "easy", factor=4)]
TABLE = {one["key"]: [RIGHT, WRONG] for one in ROWS}


@pytest.fixture(autouse=True)
def _haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_DELAY_S", 0.01)


def grader(verdict: Callable[[dict[str, Any]], Verdict]) -> tuple[Reply, list[dict[str, Any]]]:
    """One that comes to these verdicts, and what it was asked to grade."""
    asked: list[dict[str, Any]] = []

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        match one.path:
            case "/health/live":
                return 200, {}, {}
            case "/languages":
                return 200, {}, LANGUAGES
            case "/problems":
                return 201, {}, {"id": problem_id(parse_problem(one.body))}
        body = json.loads(one.body)
        asked.append(body)
        if body.get("source") is None:
            return 200, {}, json.loads(unrun("format_error", 2, 11).model_dump_json())
        return 200, {}, json.loads(graded((2, Verdict.ACCEPTED), (11, verdict(body))).model_dump_json())

    return reply, asked


def accepting(body: dict[str, Any]) -> Verdict:
    return Verdict.ACCEPTED


def evaluate(tmp_path: Path, model: Model, graded_by: Reply, *options: object) -> Any:
    file = write(tmp_path / "rows.jsonl", ROWS)
    with answering(model) as server, answering(graded_by) as url:
        return rkgrade(
            *("problems", file, "--out", tmp_path / "out", "--url", url, "--server", f"{server}/v1"),
            *("--samples", 2, "--patience", 0.3, *options),
        )


def test_a_server_that_is_busy_gives_one_sample_at_a_time_and_takes_no_long_prompt(tmp_path: Path) -> None:
    too_long = {"error": {"message": "This model's maximum context length is 8 tokens. However, you requested 9."}}
    trouble = iter([(503, {"Retry-After": "0"}), (429, {}), (500, {})])
    lock = threading.Lock()
    model = Model(TABLE, most=1, refuses={"second": (400, too_long)})

    keys = []
    (tmp_path / "key").write_text("sk-secret\n")
    (tmp_path / "template").write_text("$statement in $language for 1 $$")

    def busy(one: Asked) -> tuple[int, dict[str, str], object]:
        keys.append(one.authorization)
        with lock:
            status, headers = next(trouble, (200, {})) if one.path != "/v1/models" else (200, {})
        return (status, headers, {}) if status != 200 else model(one)

    options = ["--concurrency", 1, "--key-file", tmp_path / "key", "--template", tmp_path / "template"]
    options += ["--temperature", 0.5, "--top-p", 0.9, "--max-tokens", 7, "--stop", "END", "--extra", '{"top_k": 3}']
    done = evaluate(tmp_path, busy, grader(accepting)[0], *options)  # type: ignore[arg-type]
    assert (done.exit_code, done.stderr) == (0, "")
    assert set(keys) == {"Bearer sk-secret"}
    told = {name: value for name, value in model.asked[0].items() if name != "seed"}
    assert told == {
        "model": "m",
        "messages": [{"role": "user", "content": "first in Python 3 for 1 $"}],
        "n": 2,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 7,
        "stop": ["END"],
        "top_k": 3,
    }
    assert model.asked_for() == {"first": 2 + 1, "second": 2, "third": 2 + 1}
    assert len({body["seed"] for body in model.asked}) == 5
    found = report(tmp_path / "out")
    assert [one.correct for one in found.problems] == [2, 0, 2]
    assert (found.prompts_too_long, found.problems[1].categories["format_error"]) == (2, 2)
    assert "2 samples whose prompt the model has no room for" in done.stdout


def test_no_room_for_any_prompt_is_a_mistake_and_no_result(tmp_path: Path) -> None:
    words = "This model's maximum context length is 8192 tokens, and max_tokens is too large: 16384."
    model = Model(TABLE, refuses=dict.fromkeys(TABLE, (400, {"error": {"message": words}})))
    done = evaluate(tmp_path, model, grader(accepting)[0], "--chunk", 1, "--concurrency", 1)
    assert done.exit_code == 3
    # Of two chunks one is asked for.
    assert model.asked_for() == dict.fromkeys(TABLE, 1)
    assert f"with so many tokens for an answer (--max-tokens): {words}; what" in done.stderr
    assert lines(tmp_path / "out" / "generations.jsonl") == []
    assert evaluate(tmp_path, Model(TABLE), grader(accepting)[0], "--max-tokens", 4096).exit_code == 0


def test_a_server_that_dies_ends_it_with_a_word_and_a_rerun_goes_on(tmp_path: Path) -> None:
    model, (reply, asked) = Model(TABLE), grader(accepting)

    def dying(one: Asked) -> tuple[int, dict[str, str], object]:
        return model(one) if len(model.asked) < 2 else (502, {}, b"Bad Gateway")

    done = evaluate(tmp_path, dying, reply, "--concurrency", 1)  # type: ignore[arg-type]
    assert done.exit_code == 3
    assert "/v1 did not take /chat/completions for 0.3 s: it answers 502: Bad Gateway; what was done is" in done.stderr
    assert len(lines(tmp_path / "out" / "generations.jsonl")) == 4
    assert not (tmp_path / "out" / "report.json").exists()

    again = Model(TABLE)
    assert evaluate(tmp_path, again, reply).exit_code == 0
    assert again.asked_for() == {"third": 2}
    assert len(asked) == 6
    # All is there: a rerun needs no server.
    file, url = tmp_path / "rows.jsonl", "http://127.0.0.1:9/v1"
    with answering(reply) as at:
        command = ("problems", file, "--out", tmp_path / "out", "--url", at, "--samples", 2)
        assert rkgrade(*command, "--server", url).exit_code == 0
        more = rkgrade(*command[:-1], 3, "--server", url, "--patience", 0.3)
        assert (more.exit_code, "did not take /models for 0.3 s" in more.stderr) == (3, True)


def test_faults_of_the_grader_are_tried_again_and_are_no_failures(tmp_path: Path) -> None:
    def failing(body: dict[str, Any]) -> Verdict:
        return Verdict.INTERNAL_ERROR if "print(2)" in body["source"] else Verdict.ACCEPTED

    reply, asked = grader(failing)
    done = evaluate(tmp_path, Model(TABLE), reply)
    found = report(tmp_path / "out")
    assert (done.exit_code, found.faults, len(asked)) == (1, 3, 3 + 3 * 3)
    assert (found.strata[0].solve_rate.mean, found.problems[0].samples) == (1.0, 2)
    assert {name: count for name, count in found.problems[0].categories.items() if count} == {"correct": 1}
    assert "3 samples at which the grader failed: in no rate" in done.stdout

    reply, asked = grader(lambda body: Verdict.WRONG_ANSWER)
    done = evaluate(tmp_path, Model(TABLE), reply)
    assert (done.exit_code, len(asked), report(tmp_path / "out").faults) == (0, 3, 0)
    assert report(tmp_path / "out").strata[0].solve_rate.mean == 0.5


def out_of(change: str) -> Callable[[Path], None]:
    """A folder whose generations end with this line."""

    def prepare(tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "generations.jsonl").write_text(change)

    return prepare


def template(text: str) -> Callable[[Path], None]:
    return lambda tmp_path: (tmp_path / "template").write_text(text) and None


def nothing(tmp_path: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("options", "prepare", "said"),
    [
        (["--model", "other"], nothing, "--model: the server has no 'other'; it has m"),
        (["--k", "3"], nothing, "--k: pass@3 needs 3 samples of each problem, and there are 2"),
        (["--language", "cobol"], nothing, "--language: the grader has no 'cobol'; it has python"),
        (["--extra", "{"], nothing, "--extra: not JSON: Expecting property name"),
        (["--extra", '{"n": 2}'], nothing, "--extra: n: has an option of its own"),
        (["--extra", '{"top_k": NaN}'], nothing, "--extra: a number that JSON does not have"),
        (["--temperature", "inf"], nothing, "--temperature: Input should be a finite number"),
        (["--run", "\udcff"], nothing, "--run: a text with half of a surrogate pair has no UTF-8 form"),
        (["--server", "model:9000"], nothing, "--server is 'model:9000', and an address is written as"),
        (["--completions", "x"], nothing, "say where completions come from: --server URL or --completions FILE"),
        (["--api", "completions", "--setting", "tools"], nothing, "--api: tools takes turns"),
        (["--template", "none"], nothing, "--template: none: No such file"),
        (["--template", "template"], template("Solve it."), "template: says nothing of the problem: $statement is not"),
        (["--template", "template"], template("$statement $name"), "the template: $name is none of $statement,"),
        (["--template", "template"], template("$statement for 5$"), "the template: a dollar sign is $$"),
        ([], out_of('{"task": 1}\n'), "generations.jsonl: line 1 is none of an evaluation's generations"),
        (["--key-file", "none"], nothing, "none: No such file or directory"),
    ],
)
def test_what_cannot_be_followed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], prepare: Callable[[Path], None], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    done = evaluate(tmp_path, Model(TABLE), grader(accepting)[0], *options)
    assert done.exit_code == 2
    assert f"rkgrade: {said}" in done.stderr.replace(f"{tmp_path}/out/", "")
    assert not (tmp_path / "out" / "report.json").exists()


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (400, {"error": {"message": "n is too\n large"}}, "answers 400 to /v1/chat/completions: n is too large"),
        (401, {"detail": "no key"}, "answers 401 to /v1/chat/completions: no key"),
        (200, {"choices": []}, "answers /chat/completions not as OpenAI's API does: there is no `choices`"),
        (200, {"choices": [{"text": "x"}]}, "a choice has no `content`"),
        (200, b"<html>", "it is no JSON object"),
        (200, b"[" * 100_000, "it is no JSON object"),
        (404, b"[" * 100_000, "answers 404 to /v1/chat/completions: [["),
    ],
)
def test_a_server_that_refuses_is_quoted(tmp_path: Path, status: int, content: object, said: str) -> None:
    model = Model(TABLE, refuses={"first": (status, content)})
    done = evaluate(tmp_path, model, grader(accepting)[0])
    assert done.exit_code == 3
    assert said in done.stderr


def test_an_answer_that_cannot_be_unpacked_is_asked_for_again(tmp_path: Path) -> None:
    model, packed = Model(TABLE), iter([({"Content-Encoding": "gzip"}, b"not packed")])

    def packing(one: Asked) -> tuple[int, dict[str, str], object]:
        headers, content = next(packed, ({}, b"")) if one.path != "/v1/models" else ({}, b"")
        return (200, headers, content) if headers else model(one)

    assert evaluate(tmp_path, packing, grader(accepting)[0], "--concurrency", 1).exit_code == 0  # type: ignore[arg-type]
    assert model.asked_for() == dict.fromkeys(TABLE, 2)


def test_other_settings_need_another_folder(tmp_path: Path) -> None:
    reply, _ = grader(accepting)
    # What had no sample yet has no settings either.
    assert evaluate(tmp_path, Model(TABLE), reply, "--model", "other").exit_code == 2
    assert evaluate(tmp_path, Model(TABLE), reply, "--temperature", 0.5).exit_code == 0
    done = evaluate(tmp_path, Model(TABLE), reply, "--temperature", 0.75, "--chunk", 2)
    assert done.exit_code == 2
    differ = "chunk is 16 there, and 2 here; temperature is 0.5 there, and 0.75 here: say another --out"
    assert done.stderr == f"rkgrade: {tmp_path}/out/manifest.json: holds another evaluation: {differ}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"key": "first"', "row 1: the line: not JSON"),
        ('{"completion": "x"}', "row 1: key: missing, and so is problem_id"),
        ('{"key": "first"}', "row 1: completion: exactly one of completion and source is needed"),
        ('{"key": "first", "source": 7}', "row 1: source: must be a string, not int"),
    ],
)
def test_a_line_of_completions_that_is_none_is_named(tmp_path: Path, line: str, said: str) -> None:
    given = tmp_path / "given.jsonl"
    given.write_text('{"key": "first", "completion": "x"}\n' + line + "\n")
    with answering(grader(accepting)[0]) as url:
        file = write(tmp_path / "rows.jsonl", ROWS)
        done = rkgrade("problems", file, "--out", tmp_path / "out", "--url", url, "--completions", given)
        assert done.exit_code == 2
        assert f"rkgrade: {given} {said}" in done.stderr
        # Nothing of it was kept, and the mended file is not another one.
        given.write_text('{"key": "first", "completion": "x"}\n{"key": "none", "completion": "y"}\n')
        done = rkgrade("problems", file, "--out", tmp_path / "out", "--url", url, "--completions", given)
    assert done.exit_code == 0
    assert done.stderr == "rkgrade: 1 completion of problems that are not among these: left out\n"


def test_options_of_sampling_mean_nothing_to_completions(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.jsonl", ROWS)
    done = rkgrade("problems", rows, "--out", tmp_path / "out", "--completions", rows, "--temperature", 0.5)
    assert done.exit_code == 2
    assert done.stderr == "rkgrade: --temperature: is for --server: completions of a file are there already\n"


def test_missing_samples_are_asked_for_in_chunks_that_stay_the_same() -> None:
    task = Task("id", "sha256:0", "key", "", "prompt")
    assert chunks(task, range(10), 4) == [Chunk(task, 0, 4), Chunk(task, 4, 4), Chunk(task, 8, 2)]
    assert chunks(task, [1, 2, 3, 4, 6], 4) == [Chunk(task, 1, 3), Chunk(task, 4, 1), Chunk(task, 6, 1)]


def test_a_program_that_brings_a_checker_down_is_wrong_and_no_fault() -> None:
    grade = Grade.of("hash", "key", provoked(2, 11), 1)
    assert (grade.category, grade.is_fault, grade.provoked) == ("correctness_failure", False, True)
    assert grade.rewards == {"R_1": 0.0, "R_2": 0.0, "R_inf": 0.0}
