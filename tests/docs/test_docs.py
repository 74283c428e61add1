"""The documentation names what there is, and its links lead somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import httpx
import pytest
from typer.core import TyperGroup
from typer.main import get_group

from rl_client.async_client import AsyncGrader
from rl_client.cli import build
from rl_client.client import Grader
from rl_client.datasets.kattis import read_package
from rl_client.labels import NAMES, Label, named
from rl_client.sessions import Session
from rl_client.tools import ToolLimits
from sandbox.languages import REGISTRY
from service.settings import OTHERS, Settings
from tests.serving import RKGRADE, Server

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.jail
def test_the_first_grade_of_the_readme_comes_out_as_it_says() -> None:
    page = (ROOT / "README.md").read_text()
    command, _, told = (
        page.partition("    $ ../../.venv/bin/rkgrade ")[2].partition("\nThe quadratic")[0].partition("\n")
    )
    folder = ROOT / "examples/two-sum-count"
    programs = [str(path.relative_to(folder)) for path in sorted(folder.glob("submissions/*/*.py"))]
    assert command == "grade . submissions/*/*.py"
    done = subprocess.run([RKGRADE, "grade", ".", *programs], cwd=folder, capture_output=True, text=True, timeout=100)
    assert _without_figures(done.stdout) == _without_figures(textwrap.dedent(told))


def _without_figures(table: str) -> list[list[str]]:
    return [re.sub(r"[\d.]+ (s|MiB)\b", "", line).split() for line in table.strip().splitlines()]


@pytest.mark.jail
def test_the_completion_of_the_api_page_is_graded_as_it_says(grader_url: str) -> None:
    page = (ROOT / "docs/api.md").read_text()
    example = page[page.index("## A completion, graded") :]
    [sent] = re.findall(r"-d '(\{.*?\})'\n", example.partition("\n## ")[0], re.S)
    told = example.partition("of the answer:\n")[2].partition(", ...")[0]
    problem = read_package(ROOT / "examples/two-sum-count").model_dump_json(exclude_defaults=True)
    assert httpx.put(f"{grader_url}/problems", content=problem).json()["id"] in sent
    result = httpx.post(f"{grader_url}/grade", content=sent, timeout=60).json()
    for name, value in json.loads(told + "}").items():
        assert result[name] == value


@pytest.mark.jail
def test_the_script_of_the_trainers_page_prints_what_it_says(grader: Server) -> None:
    page = (ROOT / "docs/trainers.md").read_text()
    example = page[page.index("## An answer's reward") : page.index("## Labels")]
    indented = re.findall(r"(?:^    .*\n|^\n(?=\n*    ))+", example, re.M)
    script, told = (textwrap.dedent(block) for block in indented if block.strip())
    source = script.replace("http://127.0.0.1:8000", grader.url)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert (done.stdout.strip(), done.stderr) == (told.strip(), "")


def test_every_field_of_a_label_and_every_reward_is_documented() -> None:
    page = (ROOT / "docs/trainers.md").read_text()
    labels = page[page.index("## Labels") : page.index("## What becomes")]
    assert [name for name in Label.model_fields if f"`{name}`" not in labels] == []
    written = re.findall(r"^\| `(\w+)(?::[^`]*)?`(?:, `[^`]*`)? \| ", labels.partition("| `reward` | value")[2], re.M)
    assert sorted(written) == sorted(NAMES)
    for text in re.findall(r"^\| `([^`]*)`(?:, `([^`]*)`)? \| ", labels.partition("| `reward` | value")[2], re.M):
        for name in filter(None, text):
            named(name)


@pytest.mark.parametrize(
    ("trainer", "tested"),
    [
        ("OpenRLHF", ["examples/openrlhf/train", "tests/service/test_openrlhf.py"]),
        ("verl", ["examples/verl/grpo.sh"]),
        ("TRL", ["examples/trl/train.py"]),
        ("verifiers", ["examples/verifiers/eval.toml", "tests/rl_client/trainers/test_verifiers.py"]),
    ],
)
def test_what_the_readme_tells_a_trainer_is_what_the_tests_tell_it(trainer: str, tested: list[str]) -> None:
    section = (ROOT / "README.md").read_text().partition(f"### {trainer}\n")[2].partition("\n##")[0]
    # Names of settings, and what they are set to where that is one of ours.
    lines = "\n".join(re.findall(r"^    (.+)", section, re.M))
    names = re.findall(r"--[\w.]+|^\+?reward\.[\w.]+|pkg://[\w.]+|/openrlhf/\w+|@ \S+|from .+|\w+\(url=", lines, re.M)
    texts = "".join((ROOT / one).read_text() for one in tested)
    assert names
    assert [name for name in names if name.removeprefix("@ ") not in texts] == []


def test_every_method_of_a_client_and_every_bound_of_tools_is_documented() -> None:
    page = (ROOT / "docs/trainers.md").read_text()
    client, tools = page[page.index("## The client") :].partition("\n## Tools")[::2]
    methods = {name for kind in (Grader, AsyncGrader, Session) for name in vars(kind) if not name.startswith("_")}
    assert [name for name in methods if f"`{name}(" not in client] == []
    assert [name for name in ToolLimits.__dataclass_fields__ if f"`{name}`" not in tools] == []


@pytest.mark.jail
def test_the_program_of_the_api_page_runs_as_it_says(grader_url: str) -> None:
    page = (ROOT / "docs/api.md").read_text()
    example = page[page.index("## Running a program") :].partition("\n## ")[0]
    [sent] = re.findall(r"-d '(\{.*?\})'\n", example, re.S)
    told = example.partition(sent)[2].partition("\n")[2].partition(', "cpu_s"')[0].partition('"cpu_s"')[0]
    result = httpx.post(f"{grader_url}/run", content=sent, timeout=60).json()
    for name, value in json.loads(told.rstrip().rstrip(",") + "}").items():
        assert result[name] == value


@pytest.mark.jail
def test_the_program_for_sandbox_fusion_runs_as_it_says(grader_url: str) -> None:
    page = (ROOT / "docs/api.md").read_text()
    example = page[page.index("## As SandboxFusion does") :].partition("\n## ")[0]
    [sent] = re.findall(r"-d '(\{.*?\})'\n", example, re.S)
    told = json.loads(example.partition(sent)[2].partition("\n")[2].partition("\n\n")[0])
    result = httpx.post(f"{grader_url}/run_code", content=sent, timeout=60).json()
    for answer in (told, result):
        del answer["run_result"]["execution_time"], answer["run_result"]["cpu_time"]
    assert result == told


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs/deployment.md").read_text()
    for name, field in Settings.model_fields.items():
        (row,) = re.findall(rf"^\| `RKGRADE_{name.upper()}` \| (.*) \| (.*) \|$", text, re.M)
        assert row[1] == field.description
        if field.default_factory is None:
            assert row[0].lower() == f"`{field.default}`".lower()


@pytest.mark.parametrize("file", [*PAGES, ROOT / "docker-compose.yml"], ids=lambda file: file.name)
def test_no_variable_that_is_told_of_keeps_the_service_from_starting(file: Path) -> None:
    known = OTHERS | {f"RKGRADE_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"RKGRADE_\w+", file.read_text())) - known == set()


def test_every_command_and_every_option_of_grade_is_documented() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    commands = get_group(build()).commands
    assert [name for name in commands if f"`rkgrade {name}" not in text] == []
    options = [option for parameter in commands["grade"].params for option in parameter.opts if option[:2] == "--"]
    assert [option for option in options if option not in text] == []


def test_every_data_set_and_every_option_of_its_import_is_documented() -> None:
    cli, sets = (ROOT / "docs/cli.md").read_text(), (ROOT / "docs/datasets.md").read_text()
    imports = get_group(build()).commands["import"]
    assert isinstance(imports, TyperGroup)
    for name, command in imports.commands.items():
        assert f"`{name}`" in sets or f"import {name}" in cli
        options = [option for parameter in command.params for option in parameter.opts if option[:2] == "--"]
        assert [option for option in options if option not in cli] == []


@pytest.mark.parametrize(
    ("name", "file"), [("merge", "frontier.md"), ("evaluate", "evaluate.md"), ("ensemble", "frontier.md")]
)
def test_every_option_is_documented(name: str, file: str) -> None:
    page = (ROOT / "docs" / file).read_text()
    one = get_group(build()).commands[name]
    for command in one.commands.values() if isinstance(one, TyperGroup) else (one,):
        options = [option for parameter in command.params for option in parameter.opts if option[:2] == "--"]
        assert [option for option in options if f"`{option}" not in page] == []


def test_every_route_is_documented() -> None:
    text = (ROOT / "docs/api.md").read_text()
    from rl_client.trainers.openrlhf_endpoint import rewardable
    from service.routes import compat, grade, health, jobs, languages, problems, run, sandbox_fusion, sessions, status

    modules = (grade, health, jobs, languages, problems, run, sandbox_fusion, sessions, status)
    routers = [module.router for module in modules] + [compat.router(rewardable)]
    routes = [route for router in routers for route in router.routes]
    for route in routes:
        for method in route.methods:  # type: ignore[attr-defined]
            assert re.search(rf"`{method} {re.sub(r'{[^}]*}', '{id}', route.path)}`", text)  # type: ignore[attr-defined]


def test_every_language_is_documented_with_all_its_names() -> None:
    text = (ROOT / "docs/languages.md").read_text()
    for language in REGISTRY.values():
        (row,) = re.findall(rf"^\| `{re.escape(language.id)}` \| ?(.*?) ?\| ?(.*?) ?\|", text, re.M)
        assert row == (" ".join(f"`{name}`" for name in language.aliases), "yes" if language.is_default else "")


def test_the_sweeps_are_computed_from_the_figures_that_stand_in_the_benchmarks_page() -> None:
    told = (ROOT / "docs/scale.md").read_text().partition("<!-- figures: var/bench/scale.md -->")[2]
    printed = subprocess.run([sys.executable, "bench/scale.py"], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert (told.partition("<!-- end -->")[0].strip(), printed.stderr) == (printed.stdout.strip(), "")


def test_an_assumption_of_ones_own_is_told_from_the_one_that_the_table_explains() -> None:
    command = [sys.executable, "bench/scale.py", "--samples", "64"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100).stdout
    assert re.findall(r"^\| samples +\| +(.+?) \|", printed, re.M) == ["64, by default 250"]
