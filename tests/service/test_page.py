"""The page at /, as somebody uses it: a real browser, real clicks, a real service behind it."""

from __future__ import annotations

import json
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, ViewportSize, expect

from tests.conftest import Serve
from tests.service.conftest import BROWSER_WITHIN_MS
from tests.serving import Server, serving

pytestmark = pytest.mark.jail

TOKEN = "looker-on-0123456789abcdef"
FLAGS = ("--workers", "1", "--languages", "python,c")
DESK, PHONE = ViewportSize(width=1320, height=900), ViewportSize(width=360, height=740)

SLOW = {
    "kind": "stdio",
    "tests": [
        {"input": "1\n", "output": "0\n", "name": "tiny"},
        {"input": "1" * 50 + "\n", "output": "0\n"},
        {"input": "1" * 500 + "\n", "output": "0\n", "name": "long"},
    ],
    "limits": {"cpu_s": 0.2, "memory_mb": 64},
}
SPINS = "n = len(input())\nwhile n > 100:\n    pass\nprint(0)\n"


@pytest.fixture(scope="module")
def server(grader_data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One without tokens, whose last grades are those of this module."""
    with serving(grader_data_dir, tmp_path_factory.mktemp("page") / "log", *FLAGS) as one:
        yield one
        assert one.end() == 0


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A tab on a desk; it must tell of no error, not even of one that a policy stopped."""
    context = chromium.new_context(viewport=DESK)
    context.set_default_timeout(BROWSER_WITHIN_MS)
    tab = context.new_page()
    complaints: list[str] = []
    tab.on("console", lambda one: complaints.append(one.text) if one.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    yield tab
    context.close()
    # A browser notes each answer above 399 and each that did not come by itself.
    assert [one for one in complaints if not one.startswith("Failed to load resource: ")] == []


def grade(page: Page) -> None:
    page.locator("#grade").click()
    expect(page.locator("#progress")).to_be_hidden()


def paste(page: Page, problem: dict[str, Any], source: str) -> None:
    page.get_by_text("Pasted", exact=True).click()
    page.get_by_label("Problem, as JSON").fill(json.dumps(problem))
    page.get_by_label("Program", exact=True).fill(source)


def test_a_program_that_is_too_slow_shows_how_it_grows(server: Server, page: Page) -> None:
    page.goto(server.url)
    page.get_by_role("button", name="right").click()
    grade(page)
    page.get_by_role("button", name="too slow").click()
    grade(page)
    told = page.locator("#growth").inner_text()
    found = re.match(r"CPU time grows with the input length to the power of ([\d.]+) \(([\d.]+) to ([\d.]+)\)", told)
    assert found is not None, told
    assert 1.5 < float(found[1]) < 2.5
    assert re.search(r"and meets its limit at about [\d,]+\.", told)
    paste(page, SLOW, "print(0)")
    grade(page)
    expect(page.locator("#growth")).to_be_hidden()


def test_a_click_grades_the_example_and_shows_where_it_breaks(server: Server, page: Page) -> None:
    page.goto(server.url)
    expect(page.locator("#ready")).to_have_text("ready")
    page.get_by_role("button", name="wrong").click()
    grade(page)
    expect(page.locator("#summary")).to_contain_text("wrong answer")
    expect(page.locator("#summary")).to_contain_text("correctness failure")
    expect(page.locator("#sentence")).to_contain_text("The first failure is at input length")
    result = json.loads(page.locator("#json").text_content() or "")
    assert result["verdict"] == "wrong_answer"
    # A mark for each test in both panels, and each R_k by name.
    assert page.locator("#chart .mark").count() == 2 * len(result["tests"])
    failed = sum(test["verdict"] != "accepted" for test in result["tests"])
    assert 0 < failed < len(result["tests"])
    assert page.locator("#chart .mark.bad").count() == 2 * failed
    rewards = [text for text in page.locator("#chart text").all_text_contents() if text.startswith("R") and "=" in text]
    assert rewards == [
        f"R{key.removeprefix('R_').replace('inf', '∞').translate(str.maketrans('12345', '₁₂₃₄₅'))} = {value}"
        for key, value in result["rewards"].items()
    ]
    # The right program is the next click away.
    page.get_by_role("button", name="right").click()
    grade(page)
    expect(page.locator("#summary")).to_contain_text("accepted")
    expect(page.locator("#sentence")).to_have_text("Right at every size.")
    expect(page.locator("#chart .mark.ok")).to_have_count(2 * len(result["tests"]))
    # Both are among the last grades, the newest first.
    verdicts = page.locator("#recent tbody tr .pill")
    expect(verdicts.nth(0)).to_have_text("accepted")
    expect(verdicts.nth(1)).to_have_text("wrong answer")


def test_the_chart_is_true_to_its_scales(server: Server, page: Page) -> None:
    page.goto(server.url)
    paste(page, SLOW, SPINS)
    grade(page)
    expect(page.locator("#summary")).to_contain_text("time limit")
    result = json.loads(page.locator("#json").text_content() or "")
    lines = [float(x) for x in page.locator("#chart line.grid[y2]").evaluate_all(
        "all => all.filter(one => one.getAttribute('x1') === one.getAttribute('x2')).map(one => one.getAttribute('x1'))"
    )]  # fmt: skip
    # 1, 10, 100, 1000: equally far apart, and between them each test by the logarithm of its length.
    assert len(lines) == 4
    decade = lines[1] - lines[0]
    assert lines == pytest.approx([lines[0] + k * decade for k in range(4)])
    places = page.locator("#chart .hit").evaluate_all(
        "all => all.map(one => [one.textContent, +one.getAttribute('cx'), +one.getAttribute('cy')])"
    )
    lengths = {2: 0.30103, 51: 1.70757, 501: 2.69984}
    for test in result["tests"]:
        mine = [(x, y) for title, x, y in places if title.startswith(f"test {test['index']}")]
        assert [x for x, _ in mine] == pytest.approx([lines[0] + lengths[test["input_length"]] * decade] * 2, abs=0.01)
    bounds = page.locator("#chart line.bound").evaluate_all("all => all.map(one => +one.getAttribute('y1'))")
    slow = [y for title, _, y in places if title.startswith("test 2")]
    quick = [y for title, _, y in places if title.startswith("test 0")]
    # The one that ran out of time lies at its limit, which is above; memory stayed far below its own.
    assert slow[0] <= bounds[0] + 1 < quick[0] - 40
    assert bounds[1] < slow[1]
    expect(page.locator("#chart text.bound")).to_have_text(["limit", "0.2 s", "limit", "64 MiB"])
    expect(page.locator("#chart text.first")).to_have_text("first failure")
    # The first failure is picked; a click picks another.
    expect(page.locator("#picked h3")).to_contain_text("test 2 (long)")
    page.locator("#chart .hit").first.click()
    expect(page.locator("#picked h3")).to_contain_text("test 0 (tiny)")
    page.get_by_text("Tests as a table").click()
    page.locator("#tests").get_by_role("button", name="test 1", exact=True).click()
    expect(page.locator("#picked h3")).to_contain_text("test 1")


def test_a_stored_problem_is_graded_by_its_id(server: Server, page: Page) -> None:
    stored = httpx.put(f"{server.url}/problems", json=SLOW).json()["id"]
    page.goto(server.url)
    page.get_by_text("Stored", exact=True).click()
    page.get_by_label("Id, as PUT /problems returned it").fill(stored)
    page.get_by_label("Program", exact=True).fill("print(0)\n")
    page.get_by_label("stop at the first failure").check()
    grade(page)
    expect(page.locator("#summary")).to_contain_text("accepted")
    # And from there by a click on it among the last grades.
    page.reload()
    page.locator("#recent").get_by_role("button").first.click()
    expect(page.get_by_label("Id, as PUT /problems returned it")).to_have_value(stored)


def test_a_result_that_is_known_says_so_and_is_run_anew_on_demand(
    grader_data_dir: Path, tmp_path: Path, page: Page
) -> None:
    with serving(grader_data_dir, tmp_path / "log", *FLAGS, "--verdict-cache") as server:
        page.goto(server.url)
        expect(page.locator("#ready")).to_have_text("ready")
        paste(page, SLOW | {"limits": {"cpu_s": 5.0}}, f"print(0)  # {uuid.uuid4()}\n")
        grade(page)
        expect(page.locator("#summary")).to_contain_text("accepted")
        expect(page.locator("#summary")).not_to_contain_text("known")
        grade(page)
        expect(page.locator("#summary")).to_contain_text("known from an earlier run")
        expect(page.locator("#known")).to_have_text("1")
        expect(page.locator("#asked")).to_have_text("2")
        page.get_by_label("run even if known").check()
        grade(page)
        expect(page.locator("#summary")).not_to_contain_text("known")


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ('{"kind": "stdio", "tests": []}', "problem.tests: A problem needs at least one test"),
        ('{"kind": "stdio", "tests": [{"input": 1}], "limits": 7}', "problem.tests[0].input"),
        ("{", "the problem is no JSON"),
        ('"sha256:' + "0" * 64 + '"', "no problem sha256:"),
    ],
)
def test_a_mistake_is_told_with_its_field(server: Server, page: Page, problem: str, words: str) -> None:
    page.goto(server.url)
    page.get_by_text("Pasted", exact=True).click()
    page.get_by_label("Problem, as JSON").fill(problem)
    grade(page)
    expect(page.get_by_role("alert").filter(has_text=words)).to_be_visible()
    expect(page.locator("#result")).to_be_hidden()


def test_what_does_not_compile_is_told_with_the_compilers_words(server: Server, page: Page) -> None:
    page.goto(server.url)
    page.get_by_label("in", exact=True).select_option("c")
    page.get_by_label("Program", exact=True).fill("int main(void) { return nothing_of_that_name; }\n")
    grade(page)
    expect(page.locator("#summary")).to_contain_text("compile error")
    expect(page.locator("#compiler")).to_contain_text("nothing_of_that_name")


def test_a_grade_is_cancelled_by_a_click(server: Server, page: Page, sleeper: dict[str, Any]) -> None:
    page.goto(server.url)
    paste(page, sleeper["problem"], sleeper["source"])
    page.locator("#grade").click()
    expect(page.locator("#busy")).to_have_text("1")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert").filter(has_text="Cancelled")).to_be_visible()
    expect(page.locator("#busy")).to_have_text("0")


def test_a_service_that_is_not_ready_or_gone_is_told(serve: Serve, page: Page, sleeper: dict[str, Any]) -> None:
    with serve(*FLAGS) as server:
        page.goto(server.url)
        expect(page.locator("#ready")).to_have_text("ready")
        paste(page, sleeper["problem"], sleeper["source"])
        page.locator("#grade").click()
        expect(page.locator("#busy")).to_have_text("1")
        server.process.send_signal(signal.SIGTERM)
        expect(page.locator("#ready")).to_have_text("not ready")
        expect(page.locator("#reasons")).to_have_text("the service is shutting down")
        page.get_by_role("button", name="Cancel").click()
        assert server.process.wait(60) == 0
    expect(page.locator("#ready")).to_have_text("out of reach")
    page.locator("#grade").click()
    expect(page.get_by_role("alert").filter(has_text="out of reach")).to_be_visible()


@pytest.fixture
def guarded(serve: Serve, tmp_path: Path) -> Iterator[Server]:
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text(f"looker-on {TOKEN}\n")
    with serve(*FLAGS, "--tokens-file", str(file)) as server:
        yield server


def test_behind_a_token_nothing_shows_until_it_is_given(guarded: Server, page: Page) -> None:
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.goto(guarded.url)
    expect(page.locator("#door")).to_be_visible()
    expect(page.locator("#inside")).to_be_hidden()
    page.get_by_label("Token", exact=True).fill("not-one-of-them-0123456789")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_have_text("This token is not good here.")
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.get_by_role("button", name="Open").click()
    expect(page.locator("#inside")).to_be_visible()
    page.get_by_role("button", name="right").click()
    grade(page)
    expect(page.locator("#recent tbody tr").first).to_contain_text("looker-on")
    # The tab keeps it, and nothing else: no cookie, no address.
    page.reload()
    expect(page.locator("#inside")).to_be_visible()
    assert page.evaluate("[JSON.stringify(localStorage), document.cookie]") == ["{}", ""]
    assert not any(TOKEN in request.url for request in asked)
    other = page.context.new_page()
    other.goto(guarded.url)
    expect(other.locator("#door")).to_be_visible()
    page.get_by_role("button", name="Forget the token").click()
    expect(page.locator("#door")).to_be_visible()
    page.reload()
    expect(page.locator("#door")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_it_can_be_read_by_everybody(server: Server, page: Page, scheme: Any, size: ViewportSize) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(size)
    page.goto(server.url)
    expect(page.locator("#inside")).to_be_visible()
    for fill in (lambda: None, lambda: (paste(page, SLOW, SPINS), grade(page), page.locator("summary").first.click())):
        fill()
        # WCAG 2.1 AA, contrast of every text and mark included.
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    heights = page.locator("#chart text").evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert min(heights) > 11


def test_it_is_used_without_a_mouse(server: Server, page: Page) -> None:
    page.goto(server.url)
    expect(page.locator("#inside")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the form")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Example")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#grade").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#summary")).to_contain_text("accepted")
    expect(page.locator("#outcome")).to_be_focused()


def test_the_documentation_works_by_itself_too(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/docs")
    page.get_by_text("/grade/batch").first.click()
    expect(page.get_by_role("button", name="Try it out")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_nothing_is_fetched_from_elsewhere(server: Server, page: Page, path: str) -> None:
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.goto(f"{server.url}{path}")
    page.wait_for_load_state("networkidle") if path == "/docs" else expect(page.locator("#inside")).to_be_visible()
    addresses = [request.url for request in asked]
    assert len(addresses) >= 4
    assert [one for one in addresses if not re.match(rf"{re.escape(server.url)}/|data:", one)] == []
