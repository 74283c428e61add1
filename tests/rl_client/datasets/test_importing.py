"""The import: options, files that are there whole or not at all, and graders that are busy, refuse or are gone."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from rl_client import patience
from rl_client.cli import build
from rl_client.datasets import sinks
from rl_client.datasets.base import readers
from rl_client.datasets.importing import Skipped
from rl_client.datasets.sinks import Answer, GraderSink, Parcel
from rl_client.encoded import EncodedProblem
from rl_client.errors import GraderUnreachable
from service.contract import parse_problem, problem_id
from tests.rl_client import answering as graders
from tests.rl_client.answering import Asked
from tests.rl_client.datasets.importing import import_files, import_rows, write
from tests.serving import RKGRADE, Server

NAMES = "abcdefgh"


def row(name: str, **change: Any) -> dict[str, Any]:
    """A row of CodeContests."""
    return {
        "name": name,
        "source": 2 if name < "d" else 5,
        "public_tests": {"input": [f"{name}\n"], "output": [f"{name}\n"]},
    } | change


ROWS = [row(name) for name in NAMES]
BAD = row("bad", public_tests={"input": [], "output": []})


def rkgrade(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build(), ["import", *map(str, arguments)])


# ---------------------------------------------------------------------------------------------------------------
# Options


def test_every_reader_of_the_folder_is_a_command() -> None:
    commands = build().registered_groups
    listed = {command.name for group in commands for command in group.typer_instance.registered_commands}  # type: ignore[union-attr]
    assert set(readers()) < listed
    assert {"code-contests", "codecontests-plus", "kattis"} <= listed


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ([], "abcdefgh"),
        (["--limit", "3"], "abc"),
        (["--offset", "6"], "gh"),
        (["--offset", "2", "--limit", "2"], "cd"),
        (["--offset", "9"], ""),
        (["--limit", "0"], ""),
        (["--split", "source=5"], "defgh"),
        (["--split", "source=5", "--offset", "1", "--limit", "2"], "ef"),
        (["--split", "source=5", "--split", "name=g"], "g"),
        (["--split", "absent="], "abcdefgh"),
        (["--split", "absent=x"], ""),
    ],
)
def test_which_rows_are_read(tmp_path: Path, options: list[str], keys: str) -> None:
    imported = import_rows("code-contests", tmp_path, ROWS, *options)
    assert imported.status == 0
    assert "".join(line["key"] for line in imported.mapping) == keys


def test_rows_are_counted_over_all_files(tmp_path: Path) -> None:
    one, other = write(tmp_path / "one.parquet", ROWS[:3]), write(tmp_path / "other.jsonl", ROWS[3:])
    imported = import_files("code-contests", tmp_path, one, other, "--offset", "2", "--limit", "2")
    assert [(line["file"], line["row"]) for line in imported.mapping] == [(str(one), 2), (str(other), 0)]


def test_a_row_that_is_selected_by_a_column_it_cannot_show_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"name"\n' + json.dumps(ROWS[0]) + "\n")
    imported = import_files("code-contests", tmp_path, path, "--split", "name=a")
    assert [line["row"] for line in imported.skipped] == [0]
    assert [line["row"] for line in imported.mapping] == [1]


def test_the_mapping_names_the_problems_that_were_written(tmp_path: Path) -> None:
    imported = import_rows("code-contests", tmp_path, [*ROWS, ROWS[0] | {"name": "again"}, BAD])

    assert imported.status == 1
    assert imported.stderr.splitlines() == [
        f"rkgrade: {tmp_path}/rows.parquet row 9: public, private and generated tests: no tests",
        "10 rows: 9 imported, 1 skipped",
        f"  problems: 8 different (9 stdio), 9 tests, {0.0} MiB",
        "  skipped: 1 no tests",
    ]
    assert [problem_id(problem) for problem in imported.problems] == [
        line["problem_id"] for line in imported.mapping[:-1]
    ]
    assert imported.mapping[-1]["problem_id"] == imported.mapping[0]["problem_id"]
    assert imported.skipped == [
        {
            "file": str(tmp_path / "rows.parquet"),
            "row": 9,
            "fault": "no tests",
            "reason": "public, private and generated tests: no tests",
        }
    ]


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [*ROWS, BAD])

    done = rkgrade("code-contests", path, "--dry-run")

    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "9 rows: 8 would be imported, 1 skipped",
        f"  problems: 8 different (8 stdio), 8 tests, {0.0} MiB",
        "  skipped: 1 no tests",
    ]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "say where to: --to URL, --out FILE or --dry-run"),
        (["--out", "x", "--dry-run"], "--to, --out and --dry-run exclude each other"),
        (["--to", "http://localhost", "--out", "x"], "--to, --out and --dry-run exclude each other"),
        (["--to", "grader:8000"], "--to is 'grader:8000', and an address is written as http://grader:8000"),
        (["--dry-run", "--split", "source"], "--split needs COLUMN=VALUE, not 'source'"),
        (["absent.parquet", "--dry-run"], "absent.parquet: no such file"),
        (["--out", "absent/x"], "absent/x: No such file or directory"),
    ],
)
def test_a_command_that_cannot_be_followed(tmp_path: Path, options: list[str], message: str) -> None:
    done = rkgrade("code-contests", write(tmp_path / "rows.parquet", ROWS), *options)
    assert (done.exit_code, done.stderr) == (2, f"rkgrade: {message}\n")


# ---------------------------------------------------------------------------------------------------------------
# Files


def test_files_are_left_as_they_were_where_an_import_breaks_off(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet", ROWS)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:-30])
    out, mapping = tmp_path / "out.jsonl", tmp_path / "map.jsonl"
    out.write_text("old\n")

    done = rkgrade("code-contests", path, broken, "--out", out, "--map", mapping)

    assert done.exit_code == 2
    assert str(broken) in done.stderr
    assert out.read_text() == "old\n"
    assert {one.name for one in tmp_path.iterdir()} == {"rows.parquet", "broken.parquet", "out.jsonl"}


def test_a_device_is_written_to_as_it_is(tmp_path: Path) -> None:
    done = rkgrade("code-contests", write(tmp_path / "rows.parquet", ROWS), "--out", "/dev/null")
    assert done.exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_a_full_disk_is_told_and_nothing_stays(tmp_path: Path) -> None:
    done = rkgrade("code-contests", write(tmp_path / "rows.parquet", ROWS), "--out", "/dev/full")
    assert (done.exit_code, done.stderr) == (2, "rkgrade: /dev/full: No space left on device\n")


# ---------------------------------------------------------------------------------------------------------------
# Graders


@pytest.mark.jail
def test_problems_are_put_to_a_real_grader_once(tmp_path: Path, grader: Server) -> None:
    path, mapping = write(tmp_path / "rows.parquet", [*ROWS, BAD]), tmp_path / "map.jsonl"

    first = rkgrade("code-contests", path, "--to", grader.url + "/", "--map", mapping)
    second = rkgrade("code-contests", path, "--to", grader.url, "--map", mapping)

    assert (first.exit_code, second.exit_code) == (1, 1)
    lines = [json.loads(line) for line in mapping.read_text().splitlines()]
    assert [line["key"] for line in lines] == list(NAMES)
    for line in lines:
        known = httpx.get(f"{grader.url}/problems/{line['problem_id']}").json()
        assert (known["kind"], known["test_count"]) == ("stdio", 1)


Reply = Callable[[str], tuple[int, dict[str, str], dict[str, Any]]]
"""What a grader answers to the body of a PUT: status, headers, content."""


def answering(reply: Reply) -> AbstractContextManager[str]:
    """A grader that answers so to problems."""

    def answer(asked: Asked) -> tuple[int, dict[str, str], object]:
        return reply(problem_id(parse_problem(asked.body))) if asked.method == "PUT" else (200, {}, {})

    return graders.answering(answer)


def test_a_busy_grader_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_DELAY_S", 0.01)
    seen: list[str] = []

    def reply(identifier: str) -> tuple[int, dict[str, str], dict[str, Any]]:
        seen.append(identifier)
        match seen.count(identifier):
            case 1:
                return 429, {"Retry-After": "0"}, {}
            case 2:
                return 503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}
            case 3:
                return 502, {}, {}
            case _:
                return 201, {}, {"id": identifier}

    path = write(tmp_path / "rows.jsonl", ROWS)
    with answering(reply) as url:
        done = rkgrade("code-contests", path, "--to", url, "--map", tmp_path / "map.jsonl")

    assert done.exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "map.jsonl").read_text().splitlines()]
    assert [line["key"] for line in lines] == list(NAMES)
    assert [seen.count(line["problem_id"]) for line in lines] == [4] * len(NAMES)


def test_what_the_grader_refuses_is_skipped_with_its_words(tmp_path: Path) -> None:
    first = problem_id(import_rows("code-contests", tmp_path, ROWS[:1]).problems[0])

    def reply(identifier: str) -> tuple[int, dict[str, str], dict[str, Any]]:
        if identifier == first:
            return 422, {}, {"detail": "the checker does not compile", "field": "checker.source"}
        return 200, {}, {"id": identifier}

    path = write(tmp_path / "rows.jsonl", ROWS)
    with answering(reply) as url:
        done = rkgrade("code-contests", path, "--to", url, "--map", tmp_path / "map.jsonl")

    assert done.exit_code == 1
    assert done.stderr.splitlines()[0] == (
        f"rkgrade: {path} row 0: the grader refused it (422): checker.source: the checker does not compile"
    )
    assert len((tmp_path / "map.jsonl").read_text().splitlines()) == len(NAMES) - 1


@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (507, {"detail": "no room"}, "answers 507: no room"),
        (401, {"detail": "no token"}, "asks for a token: no token (RKGRADE_TOKEN, --token-file)"),
        (200, {"id": "sha256:" + "0" * 64}, "its version of the contract is another"),
        (200, {}, "calls a problem None"),
    ],
)
def test_a_grader_that_cannot_go_on_ends_the_import(
    tmp_path: Path, status: int, content: dict[str, Any], words: str
) -> None:
    path = write(tmp_path / "rows.jsonl", ROWS)
    with answering(lambda _: (status, {}, content)) as url:
        done = rkgrade("code-contests", path, "--to", url, "--map", tmp_path / "map.jsonl")
    assert done.exit_code == 3
    assert words in done.stderr
    assert not (tmp_path / "map.jsonl").exists()


def test_a_grader_out_of_reach_is_told_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = rkgrade("code-contests", write(tmp_path / "rows.jsonl", ROWS), "--to", f"http://127.0.0.1:{port}")
    assert done.exit_code == 3
    assert f"no grader answers at http://127.0.0.1:{port}" in done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_an_import_that_is_ended_waits_for_nobody_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    asked, over = threading.Event(), threading.Event()

    def reply(identifier: str) -> tuple[int, dict[str, str], dict[str, Any]]:
        asked.set()
        over.wait(60)
        return 200, {}, {"id": identifier}

    path, mapping = write(tmp_path / "rows.jsonl", ROWS), tmp_path / "map.jsonl"
    with answering(reply) as url:
        command = [str(RKGRADE), "import", "code-contests", str(path), "--to", url, "--map", str(mapping)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        try:
            assert asked.wait(60)
            process.send_signal(number)
            process.communicate(timeout=30)
        finally:
            process.kill()
            over.set()

    assert process.returncode == status
    assert list(tmp_path.iterdir()) == [path]


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_DELAY_S", 0.01)
    content = b'{"kind":"stdio","tests":[{"input":"1","output":"1"}]}'
    parcel = Parcel(EncodedProblem("sha256:" + "0" * 64, content), None)
    with answering(lambda _: (503, {}, {})) as url, GraderSink(url, patience_s=0.1) as sink:
        assert list(sink.put(parcel)) == []
        with pytest.raises(GraderUnreachable, match="did not take PUT /problems for 0 s: it answers 503"):
            list(sink.finish())


def test_no_more_than_so_many_bytes_are_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third parcel passes the bound, so the first must have been answered before it is taken."""
    monkeypatch.setattr(sinks, "IN_FLIGHT_BYTES", 250)
    content = b'{"kind":"stdio","tests":[{"input":"1","output":"1"}]}'.ljust(100)
    identifier = problem_id(parse_problem(content))
    parcels = [Parcel(EncodedProblem(identifier, content), number) for number in range(3)]
    with answering(lambda _: (200, {}, {"id": identifier})) as url, GraderSink(url) as sink:
        answers = [list(sink.put(parcel)) for parcel in parcels]
        assert answers == [[], [], [Answer(parcels[0])]]
        assert list(sink.finish()) == [Answer(parcels[1]), Answer(parcels[2])]


def test_what_a_row_says_of_itself_commands_no_terminal() -> None:
    skipped = Skipped(Path("rows.jsonl"), 3, "malformed", "testtype: \x1b[2A\x9b31m\r\né")
    assert str(skipped) == "rows.jsonl row 3: testtype: \\x1b[2A\\x9b31m\\r\\né"
