"""Browsers as a weapon: text that would be markup, pages of other sites, a name that was bound anew.

Each is tried in a real browser, whose own word is what the service relies on.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.service.conftest import BROWSER_WITHIN_MS
from tests.serving import Server, metric, poll, serving

pytestmark = pytest.mark.jail

MARKUP = (
    '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'
    '<svg onload="window.pwned=1"></svg><a href="javascript:window.pwned=1">x</a>'
)


@pytest.fixture(scope="module")
def server(grader_data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("attacked") / "log"
    with serving(grader_data_dir, log, "--workers", "1", "--languages", "python,c") as one:
        yield one


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context()
    context.set_default_timeout(BROWSER_WITHIN_MS)
    yield context.new_page()
    context.close()


def test_nothing_that_a_stranger_wrote_becomes_markup(server: Server, page: Page) -> None:
    problem = {
        "kind": "stdio",
        "tests": [{"input": "1\n", "output": f"{MARKUP}1\n", "name": MARKUP}],
        "checker": {
            "type": "python",
            "source": f"import sys\nprint({MARKUP!r}, file=sys.stderr)\nprint(0)\n",
        },
    }
    source = f"import sys\nprint({MARKUP!r})\nprint({MARKUP!r}, file=sys.stderr)\n"
    asked = {"problem": problem, "language": "python", "source": source, "id": MARKUP}
    assert httpx.post(f"{server.url}/grade", json=asked, timeout=60).json()["verdict"] == "wrong_answer"
    page.goto(server.url)
    page.get_by_text("Pasted", exact=True).click()
    page.get_by_label("Problem, as JSON").fill(json.dumps(problem))
    page.get_by_label("Program", exact=True).fill(source)
    page.get_by_label("keep outputs").check()
    page.locator("#grade").click()
    expect(page.locator("#result")).to_be_visible()
    page.get_by_text("Tests as a table").click()
    # It is there, everywhere, as what it is: text.
    expect(page.locator("#recent")).to_contain_text(MARKUP)
    expect(page.locator("#picked h3")).to_contain_text(MARKUP)
    expect(page.locator("#picked pre")).to_have_count(3)
    for place in page.locator("#picked pre").all():
        expect(place).to_contain_text(MARKUP)
    expect(page.locator("#tests")).to_contain_text(MARKUP)
    assert_harmless(page)
    # A compiler quotes the source, and so does an error.
    page.get_by_label("in", exact=True).select_option("c")
    page.get_by_label("Program", exact=True).fill(f"#error {MARKUP}\n")
    page.locator("#grade").click()
    expect(page.locator("#compiler")).to_contain_text("<img src=x")
    page.get_by_label("Problem, as JSON").fill(json.dumps(problem | {MARKUP: 1}))
    page.locator("#grade").click()
    expect(page.get_by_role("alert").filter(has_text="<img src=x")).to_be_visible()
    assert_harmless(page)


def assert_harmless(page: Page) -> None:
    assert page.evaluate("window.pwned") is None
    strange = (
        "img:not([src='/icon.svg']), script:not([src='/page.js']), svg[onload], a[href^=javascript], iframe, style"
    )
    assert page.locator(strange).count() == 0


def test_the_browser_would_refuse_it_even_if_the_script_slipped(server: Server, page: Page) -> None:
    page.goto(server.url)
    refused = page.evaluate(
        """async markup => {
            const tried = [
                () => { document.body.innerHTML = markup; },
                () => { document.write(markup); },
                () => { setTimeout("window.pwned = 1"); },
                () => { document.body.setAttribute("onclick", "window.pwned = 1"); },
            ];
            const said = tried.map(one => { try { one(); return "taken"; } catch (error) { return "refused"; } });
            await fetch("https://elsewhere.example/").then(() => said.push("taken"), () => said.push("refused"));
            return said;
        }""",
        MARKUP,
    )
    assert refused == ["refused"] * 5
    assert page.evaluate("window.pwned") is None


EVIL = b"""<!doctype html><title>a page of another site</title><body><script>
async function attack(grader, body) {
  const said = [];
  const tries = [
    [grader + "/grade", {method: "POST", mode: "no-cors", body, headers: {"Content-Type": "text/plain"}}],
    [grader + "/grade", {method: "POST", mode: "no-cors", body: new Blob([body])}],
    [grader + "/grade", {method: "POST", body, headers: {"Content-Type": "application/json"}}],
    [grader + "/problems", {method: "PUT", body}],
    [grader + "/status", {}],
    [grader + "/languages", {mode: "no-cors"}],
    [grader + "/openapi.json", {}],
  ];
  for (const [address, options] of tries) {
    try { const answer = await fetch(address, options); said.push(answer.type + " " + (await answer.text()).length); }
    catch (error) { said.push("refused"); }
  }
  const form = document.createElement("form");
  form.method = "post"; form.enctype = "text/plain"; form.action = grader + "/grade"; form.target = "frame";
  const field = document.createElement("input"); field.name = body.slice(0, -1) + ',"id":"'; field.value = '"}';
  const frame = document.createElement("iframe"); frame.name = "frame";
  form.append(field); document.body.append(frame, form);
  const loaded = new Promise(resolve => { frame.onload = resolve; });
  form.submit(); await loaded;
  const script = document.createElement("script"); script.src = grader + "/page.js";
  const ended = new Promise(resolve => {
    script.onload = () => resolve("loaded");
    script.onerror = () => resolve("refused");
  });
  document.body.append(script); said.push(await ended);
  return said;
}
</script>"""


@contextlib.contextmanager
def another_site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(EVIL)))
            self.end_headers()
            self.wfile.write(EVIL)

        def log_message(self, *_: object) -> None:
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    try:
        yield f"http://evil.example:{site.server_port}/"
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


def grades(server: Server) -> float:
    return metric(server.url, "rkgrade_grades_total")


def test_a_page_of_another_site_runs_and_reads_nothing(server: Server, page: Page, a_plus_b: dict[str, Any]) -> None:
    before, refused_before = grades(server), metric(server.url, 'rkgrade_refused_total{type="cross-site"}')
    with another_site() as address:
        page.goto(address)
        said = page.evaluate("([grader, body]) => attack(grader, body)", [server.url, json.dumps(a_plus_b)])
    # Those that are no-cors may be sent, and are answered with what the page cannot see: an opaque nothing.
    assert all(one in ("refused", "opaque 0") for one in said)
    assert grades(server) == before
    assert metric(server.url, 'rkgrade_refused_total{type="cross-site"}') > refused_before


def test_a_frame_of_another_site_shows_nothing(server: Server, page: Page) -> None:
    with another_site() as address:
        page.goto(address)
        page.evaluate(
            """async grader => {
                const frame = document.createElement("iframe");
                frame.src = grader + "/";
                const loaded = new Promise(resolve => { frame.onload = resolve; });
                document.body.append(frame);
                await loaded;
            }""",
            server.url,
        )
        # The browser says that a frame has loaded before it says that what it has is an error.
        poll(lambda: _nowhere_else(page), BROWSER_WITHIN_MS / 1000, "the frame shows an error")


def _nowhere_else(page: Page) -> bool:
    page.wait_for_timeout(20)
    return all(frame.url.startswith(("http://evil.example", "chrome-error:")) for frame in page.frames)


def test_a_name_that_was_bound_anew_to_this_machine_is_no_way_in(
    server: Server, page: Page, a_plus_b: dict[str, Any]
) -> None:
    before = grades(server)
    address = server.url.replace("127.0.0.1", "evil.example")
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == 421
    # The attacker's own server answers first, and the name means this machine from then on.
    page.route("**/*", lambda route: route.fulfill(content_type="text/html", body="<!doctype html>"), times=1)
    page.goto(address)
    status = page.evaluate(
        """async body => {
            const headers = {"Content-Type": "application/json"};
            return (await fetch("/grade", {method: "POST", body, headers})).status;
        }""",
        json.dumps(a_plus_b),
    )
    assert status == 421
    assert grades(server) == before
