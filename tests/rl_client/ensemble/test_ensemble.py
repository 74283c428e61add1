"""`rkgrade ensemble` on what `rkgrade evaluate` wrote, by a real grader; and runs that do not go together."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rl_client.cli import build
from rl_client.ensemble.errors import BadRun
from rl_client.ensemble.report import Report
from rl_client.ensemble.runs import Named
from tests.rl_client.answering import answering
from tests.rl_client.evaluate.models import NONE, RIGHT, WRONG, Model, lines, rkgrade, row, write
from tests.serving import RKGRADE, Server, serving

ROWS = [row(key, "easy" if key == "kiwi" else "hard") for key in ("kiwi", "lemon", "mango", "peach")]
#: Correct samples of four, for each problem.
CORRECT = {"low": (4, 2, 0, 0), "high": (4, 0, 1, 0), "alpha=1.5": (2, 0, 0, 3)}


def ensemble(*arguments: object) -> Result:
    done = CliRunner().invoke(build("ensemble"), ["ensemble", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, grader: Server) -> Path:
    """The folder of three evaluations, of which the last was begun again for more samples, and lost its server."""
    folder = tmp_path_factory.mktemp("runs")
    file = write(folder / "rows.jsonl", ROWS)
    for name, counts in CORRECT.items():
        table = {
            one["key"]: [RIGHT] * count + [WRONG, NONE, NONE, WRONG][count:]
            for one, count in zip(ROWS, counts, strict=True)
        }
        with answering(Model(table, name=name)) as url:
            command = ["problems", file, "--out", folder / name, "--url", grader.url, "--server", f"{url}/v1"]
            assert rkgrade(*command, "--samples", 4).exit_code == 0
    shutil.copytree(folder / "high", folder / "begun")
    with answering(Model({}, refuses={})) as url:
        command = ["problems", file, "--out", folder / "begun", "--url", grader.url, "--server", f"{url}/nothing"]
        assert rkgrade(*command, "--model", "high", "--samples", 5, "--patience", 0).exit_code == 3
    return folder


@pytest.mark.jail
def test_evaluations_are_pooled(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "ensemble.json"
    done = ensemble(*(runs / name for name in CORRECT), "--budget", 3, "--folds", 2, "--json", out)
    assert (done.exit_code, done.stderr) == (0, "")
    report = Report.model_validate_json(out.read_bytes())
    assert [(one.name, one.alpha, one.samples, one.solved, one.only_here, one.share) for one in report.members] == [
        ("low", None, (4, 4), 2, 1, 1),
        ("high", None, (4, 4), 2, 1, 1),
        ("alpha=1.5", 1.5, (4, 4), 2, 1, 1),
    ]
    # One sample of each: 1, 2/4, 1/4, 3/4. Three of one: 1 and 1 - 0, 1 and 3/4, 1 and 1.
    assert report.pool.mean == pytest.approx((1 + 0.5 + 0.25 + 0.75) / 4)
    assert [one.pass_at.mean for one in report.members] == pytest.approx([2 / 4, 1.75 / 4, 2 / 4])
    assert report.best_seen.mean == pytest.approx(0.5)
    assert sum(one.best_of_folds for one in report.members) == 8
    assert {one.key: one.solved_by for one in report.turnover.problems} == {
        "kiwi": ("low", "high", "alpha=1.5"),
        "lemon": ("low",),
        "mango": ("high",),
        "peach": ("alpha=1.5",),
    }
    assert report.turnover.jaccard[0] == (1, 1 / 3, 1 / 3)
    extrapolated = report.turnover.extrapolated
    assert extrapolated is not None
    # Three correct ones of twelve, all among these four; of the others, ten, two and one.
    chances = (0, 6 / 66, 4 / 12, 4 / 220)
    assert (extrapolated.names, extrapolated.problems) == (("alpha=1.5",), ("peach",))
    assert extrapolated.by_chance == pytest.approx(sum(chances))
    # Each run had the right program and the wrong one run anew; of an answer without any nothing is.
    assert (report.flakiness.rate, report.flakiness.programs, report.flakiness.flipping) == (0, 2, 0)
    assert report.words in done.stdout
    assert re.search(r"^alpha=1\.5 +1\.5 +4 +2 +1 +0\.500 \[", done.stdout, re.M), done.stdout
    assert "1 by extrapolated ones alone (0.4 by chance alone): peach" in done.stdout

    # Another time one of the right program's gradings came to another verdict.
    kept = lines(runs / "low" / "grades.jsonl")
    at = next(number for number, one in enumerate(kept) if one["verdict"] == "accepted")
    kept[at] |= {"verdict": "time_limit", "category": "optimization_failure"}
    flaky = tmp_path / "flaky"
    shutil.copytree(runs / "low", flaky)
    write(flaky / "grades.jsonl", kept)
    with (flaky / "grades.jsonl").open("a") as torn:
        torn.write('{"grade": "')
    options = ["--allocation", "optimised", "--difficulty", "hard", "--json", "-"]
    written = subprocess.check_output([RKGRADE, "ensemble", f"low={flaky}@-0.5", runs / "high", *options])
    report = Report.model_validate_json(written)
    assert (report.problems, report.budget, report.folds, report.search) == (3, 4, 3, "exact")
    assert report.members[0].alpha == -0.5
    assert [sum(one.fold_shares[fold] for one in report.members if one.fold_shares) for fold in range(12)] == [4] * 12
    assert (report.flakiness.differing, report.flakiness.flipping) == (1, 1)
    assert report.flakiness.rate == 1 / report.flakiness.programs


@pytest.mark.jail
def test_samples_of_the_same_seeds_are_told_of(runs: Path, tmp_path: Path, grader: Server) -> None:
    file = runs / "rows.jsonl"

    def evaluated(name: str, *options: object) -> Path:
        with answering(Model({one["key"]: [RIGHT, WRONG] for one in ROWS}, name="served")) as url:
            command = ["problems", file, "--out", tmp_path / name, "--url", grader.url, "--server", f"{url}/v1"]
            assert rkgrade(*command, "--samples", 4, *options).exit_code == 0
        return tmp_path / name

    first, second, chunked = evaluated("first"), evaluated("second"), evaluated("chunked", "--chunk", 2)
    apart = evaluated("apart", "--run", "apart")
    seeds = [{one["seed"] for one in lines(folder / "generations.jsonl")} for folder in (first, second, chunked, apart)]
    assert seeds[0] == seeds[1] < seeds[2]
    assert seeds[2].isdisjoint(seeds[3])

    out = tmp_path / "ensemble.json"
    done = ensemble(first, apart, second, chunked, runs / "low", "--json", out)
    assert (done.exit_code, done.stderr) == (0, "")
    [warning] = Report.model_validate_json(out.read_bytes()).warnings
    assert warning == (
        "first, second, chunked were sampled with the same seeds (--run 'served'): near checkpoints say the same with "
        "them, so that the pool and its gain look too low; sample each with a --run of its own"
    )
    assert f"\nwarning: {warning}\n" in done.stdout

    done = ensemble(first, apart, runs / "low", "--json", out)
    assert (Report.model_validate_json(out.read_bytes()).warnings, "warning" in done.stdout) == ((), False)
    # Without a temperature a model says the same with any seed.
    cold = [evaluated(name, "--temperature", 0) for name in ("cold", "colder")]
    done = ensemble(*cold)
    assert (done.exit_code, "warning" in done.stdout) == (0, False)


@pytest.mark.jail
def test_what_the_grader_knew_of_a_program_is_no_second_run_of_it(tmp_path: Path, grader_data_dir: Path) -> None:
    rows = [one | {"problem": one["problem"] | {"limits": {"cpu_s": 10}}} for one in ROWS]
    file = write(tmp_path / "rows.jsonl", rows)
    options = ("--verdict-cache", "--workers", "1", "--languages", "python")
    with serving(grader_data_dir, tmp_path / "log", *options) as server:
        for name, fresh in {"first": (), "known": (), "fresh": ("--fresh",)}.items():
            with answering(Model({one["key"]: [RIGHT, WRONG] for one in rows}, name=name)) as url:
                command = ["problems", file, "--out", tmp_path / name, "--url", server.url, "--server", f"{url}/v1"]
                assert rkgrade(*command, "--samples", 2, *fresh).exit_code == 0
        assert server.end() == 0
    told = {}
    for name in ("known", "fresh"):
        done = ensemble(tmp_path / "first", tmp_path / name)
        told[name] = done.stdout.splitlines()[-2:]
    assert told == {
        "known": [
            "flaky verdicts: null, nothing was run twice",
            "  2 gradings known to the grader, and not run: evaluate --fresh has them run",
        ],
        "fresh": [
            told["fresh"][0],
            "flaky verdicts: 0.00%, 0 of 2 programs that were run more than once; correct but once 0.00%, 0",
        ],
    }


def edited(runs: Path, tmp_path: Path, file: str, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of a run, of which a file, or both that hold the manifest, are changed."""
    folder = tmp_path / "other"
    shutil.copytree(runs / "high", folder)
    for name in ("manifest.json", "report.json") if file == "both" else (file,):
        whole = json.loads((folder / name).read_bytes())
        change(whole["manifest"] if file == "both" and name == "report.json" else whole)
        (folder / name).write_text(json.dumps(whole))
    return folder


@pytest.mark.jail
def test_runs_that_do_not_go_together_are_refused_with_all_that_differs(runs: Path, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        template = {part: f"{text}!" for part, text in manifest["source"]["template"].items()}
        manifest["language"] = "cpp17"
        manifest["source"] |= {"temperature": 0.2, "template": template}
        manifest["source"]["extra"] = {"top_k": 20}
        manifest["grading"]["taxonomy"] = "strict"

    folder = edited(runs, tmp_path, "both", change)
    whole = json.loads((folder / "report.json").read_bytes())
    whole["problems"][0] |= {"key": "zero"}
    whole["problems"][3] |= {"problem_id": "of other tests"}
    whole["problems"][1] |= {"faults": 2}
    whole["problems"][2] |= {"samples": 3}
    (folder / "report.json").write_text(json.dumps(whole))
    done = ensemble(runs / "low", folder, runs / "begun")
    assert done.exit_code == 2
    head, *reasons = done.stderr.splitlines()
    assert head == "rkgrade: the runs cannot be pooled, for 13 reasons:"
    assert [reason.strip() for reason in reasons] == [
        "other: 1 problem with samples at which the grader failed: lemon",
        "other: 1 problem with fewer than 4 samples: mango",
        "begun: was begun again, and is not graded to its end: samples: 4 in the report, 5 in the manifest",
        "other: 1 problem with other tests or limits than in low: peach",
        "other: lacks 1 problem of low: kiwi",
        "low: lacks 1 problem of other: zero",
        r'template.program: ...e program in one code block.\n" in low, ...e program in one code block.\n!" in other',
        r'template.completing: ...ole of it in one code block.\n" in low, ...ole of it in one code block.\n!" in other',
        "temperature: 1.0 in low, 0.2 in other",
        'language: "python" in low, "cpp17" in other',
        'grading.taxonomy: "first_failure" in low, "strict" in other',
        "extra.top_k: not there in low, 20 in other",
        "other and begun hold the same samples, which count but once",
    ]


@pytest.mark.jail
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["low"], "a pool has two runs at least"),
        (["low", "low"], "the name low is given twice: say NAME=FOLDER"),
        (["low", "x=low"], "low is given twice"),
        (["low", "nothing"], "nothing: nothing is no folder"),
        (["low", "."], ".: holds no evaluation: manifest.json is not there"),
        (["low", "high@far"], "high@far: alpha must be a finite number, not 'far'"),
        (
            ["low", "high", "--budget", "5"],
            "--budget: pass@5 of a single checkpoint needs 5 samples of each problem, and low has 4 of",
        ),
        (["low", "high", "--difficulty", "x"], "--difficulty: no problem is 'x'; they are easy, hard"),
        (["low", "high", "--difficulty", "easy"], "there is one problem"),
        (["low", "high", "--json", "nothing/x"], "nothing/x: No such file or directory"),
    ],
)
def test_what_cannot_be_pooled_is_named(
    arguments: list[str], message: str, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    done = ensemble(*arguments)
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


@pytest.mark.jail
def test_files_that_are_none_of_an_evaluation_are_named(runs: Path, tmp_path: Path) -> None:
    for file, content, message in (
        ("report.json", None, "other: is not graded to its end: report.json is not there; begin the evaluation again"),
        ("report.json", "{}", "report.json: is no report of an evaluation: manifest: Field required"),
        ("manifest.json", "[", "manifest.json: is no manifest of an evaluation: Invalid JSON"),
        ("grades.jsonl", "{}\n", "grades.jsonl: line 1 is none of an evaluation's grades"),
        ("grades.jsonl", None, "grades.jsonl: No such file or directory"),
    ):
        folder = tmp_path / "other"
        shutil.copytree(runs / "high", folder)
        if content is None:
            (folder / file).unlink()
        else:
            (folder / file).write_text(content)
        done = ensemble(runs / "low", folder)
        assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
        shutil.rmtree(folder)


def test_a_run_has_the_name_and_the_alpha_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("low", "alpha=-0.5", "a@1"):
        Path(name).mkdir()
    for text, expected in {
        "low": ("low", "low", None),
        "low@0": ("low", "low", 0),
        "x=low@1.5": ("x", "low", 1.5),
        "alpha=-0.5": ("alpha=-0.5", "alpha=-0.5", -0.5),
        "far=alpha=-0.5": ("far", "alpha=-0.5", -0.5),
        "alpha=-0.5@2": ("alpha=-0.5", "alpha=-0.5", 2),
        "low@-0": ("low", "low", 0),
        "a@1": ("a@1", "a@1", None),
    }.items():
        found = Named.of(text)
        assert (found.name, str(found.folder), found.alpha) == expected, text
        assert not str(found.alpha).startswith("-0.0"), text
    for text in ("low@nan", "low@", "=low", "x=", "x=y"):
        with pytest.raises(BadRun, match=f"^{text}"):
            Named.of(text)
