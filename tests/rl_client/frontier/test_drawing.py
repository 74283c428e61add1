"""`rkgrade frontier draw`: what it says, what it writes, and its page in a real browser."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner, Result

from rl_client.cli import build
from tests.rl_client.evaluate.models import report
from tests.rl_client.frontier.evaluated import evaluated

HOSTILE = (
    "</pre></details><script>document.title = 'taken'</script><img src='http://127.0.0.1:9/x' onerror=alert(1)>&amp; {}"
)

#: Of twelve problems, each with eight samples: at 1.5 fewer fail in either way than at 0 and 1.
LINE = {"-0.5": "CCOOOOOF", "0": "CCOOOOWW", "0.5": "CCCOOWWW", "1": "CCOOWWWW", "1.5": "CCCCCOWF"}


def rkgrade(*arguments: object) -> Result:
    done = CliRunner().invoke(build("frontier"), ["frontier", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("line")
    easy = {f"problem <b>{number:02}</b>": "" for number in range(12)}
    hard = {"hard": "WWWWOOOO"}
    return [
        evaluated(folder / f"alpha={alpha}", dict.fromkeys(easy, letters) | hard, text=HOSTILE)
        for alpha, letters in LINE.items()
    ]


def test_the_page_shows_everything_and_is_taken_over_by_nothing(
    tmp_path: Path, runs: list[Path], chromium: Browser
) -> None:
    out = tmp_path / "out"
    other = evaluated(tmp_path / "3", dict.fromkeys(_keys(runs[0]), "CCCOOWWW"))
    done = rkgrade("draw", *runs, f"$R_3$ <b>={other}", "--out", out)
    assert (done.exit_code, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith("Interpolation: no trained checkpoint can be told to lie beyond what interpolation reaches")
    assert second.startswith("Extrapolation: extends the trained frontier, margin +0.")

    names = ("frontier", "categories", "format")
    assert sorted(path.name for path in out.iterdir()) == sorted(
        f"{name}.{kind}"
        for kind, named in {
            "png": names,
            "svg": names,
            "csv": ("margins", "problems", "rates"),
            "html": names[:1],
        }.items()
        for name in named
    )
    for name in names:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        ElementTree.parse(out / f"{name}.svg")
    with (out / "rates.csv").open() as file:
        rates = {row["name"]: row for row in csv.DictReader(file)}
    assert [row["trained"] for row in rates.values()] == ["0", "1", "0", "1", "0", "1"]
    assert float(rates["alpha=-0.5"]["optimization_failure"]) == pytest.approx((12 * 5 / 8 + 0.5) / 13)
    with (out / "problems.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 13 * 6

    page = chromium.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((out / "frontier.html").as_uri())
    expect(page.locator("h1")).to_have_text("Frontier of 6 checkpoints on 13 problems")
    expect(page.locator(".finding").nth(1)).to_have_text(second)
    expect(page.locator("figure svg")).to_have_count(3)
    for number in range(3):
        box = page.locator("figure svg").nth(number).bounding_box()
        assert box is not None and box["width"] > 300 and box["height"] > 200
    expect(page.locator("figure svg").first.get_by_text("$R_3$ <b>", exact=True)).to_be_visible()
    expect(page.locator("#rates tbody tr")).to_have_count(6)

    problem = page.locator("details.problem").first
    expect(problem.locator("pre").first).to_be_hidden()
    problem.locator("summary").first.click()
    expect(problem.locator("tbody tr")).to_have_count(6)
    # Nothing of the table is cut off.
    assert problem.locator(".scroll").first.evaluate("table => table.scrollWidth <= table.clientWidth")
    # Of those that have one, a sample that failed.
    sample = problem.locator("details").nth(1)
    expect(sample.locator("summary")).to_have_text(
        "alpha=0, sample 2: optimization failure, wrong answer at test <i>second</i>, of 12 bytes"
    )
    sample.locator("summary").click()
    expect(sample.locator("pre")).to_have_text(f"By alpha=0.\n```python\n{HOSTILE.replace('{}', '2')}\n```")
    assert page.title() == "Frontier of checkpoints"
    assert (asked, complaints) == ([(out / "frontier.html").as_uri()], [])
    page.close()


def test_without_both_ends_nothing_is_told_and_everything_is_drawn(tmp_path: Path, runs: list[Path]) -> None:
    done = rkgrade("draw", *runs[1:3], "--out", tmp_path)
    assert done.stdout.splitlines()[:2] == [
        "Interpolation: cannot be told without evaluations at alpha 0 and 1, and one between them.",
        "Extrapolation: cannot be told without evaluations at alpha 0 and 1, and one beyond them.",
    ]
    assert (tmp_path / "frontier.html").exists()


def test_names_in_any_script_are_drawn_without_a_word(tmp_path: Path, runs: list[Path]) -> None:
    other = evaluated(tmp_path / "3", dict.fromkeys(_keys(runs[0]), "CCCOOWWW"))
    done = rkgrade("draw", runs[1], runs[3], f"中文={other}", "--out", tmp_path / "out")
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_margin_that_rounds_to_nothing_has_no_sign_of_behind(tmp_path: Path) -> None:
    """One checkpoint fails once more in either way, of 100,000 samples of each problem."""
    folders = [evaluated(tmp_path / f"alpha={alpha}", dict.fromkeys("abcdefgh", "CW")) for alpha in (0, 0.5, 1)]
    for folder, failures in zip(folders, (9, 10, 9), strict=True):
        whole = json.loads((folder / "report.json").read_bytes())
        for one in whole["problems"]:
            one["samples"] = 100_000
            one["categories"] |= dict.fromkeys(("optimization_failure", "correctness_failure"), failures)
            one["categories"]["correct"] = 100_000 - 2 * failures
        (folder / "report.json").write_text(json.dumps(whole))
    said = rkgrade("draw", *folders, "--out", tmp_path / "out").stdout.splitlines()[0]
    assert said == (
        "Interpolation: lies behind the line between the trained checkpoints, margin 0.0000 [0.0000, 0.0000]."
    )


def test_what_cannot_be_compared_is_refused(tmp_path: Path, runs: list[Path]) -> None:
    colder = evaluated(tmp_path / "alpha=1", dict.fromkeys(_keys(runs[0]), "CCCOOWWW"), temperature=0.5)
    done = rkgrade("draw", runs[0], colder, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "temperature: 1.0 in alpha=-0.5, 0.5 in alpha=1" in done.stderr
    assert not (tmp_path / "out").exists()


def _keys(folder: Path) -> list[str]:
    return [one.key for one in report(folder).problems]
