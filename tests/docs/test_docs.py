"""The documentation names what there is, and its links lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from typer.core import TyperGroup
from typer.main import get_group

from rl_client.cli import build
from rl_client.datasets.kattis import read_package
from sandbox.languages import REGISTRY
from service.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


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


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs/deployment.md").read_text()
    for name, field in Settings.model_fields.items():
        (row,) = re.findall(rf"^\| `RKGRADE_{name.upper()}` \| (.*) \| (.*) \|$", text, re.M)
        assert row[1] == field.description
        if field.default_factory is None:
            assert row[0].lower() == f"`{field.default}`".lower()


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


def test_every_route_is_documented() -> None:
    text = (ROOT / "docs/api.md").read_text()
    from service.routes import grade, health, languages, problems

    routes = [route for module in (grade, health, languages, problems) for route in module.router.routes]
    for route in routes:
        for method in route.methods:  # type: ignore[attr-defined]
            assert re.search(rf"`{method} {re.sub(r'{[^}]*}', '{id}', route.path)}`", text)  # type: ignore[attr-defined]


def test_every_language_is_documented_with_all_its_names() -> None:
    text = (ROOT / "docs/languages.md").read_text()
    for language in REGISTRY.values():
        (row,) = re.findall(rf"^\| `{re.escape(language.id)}` \| ?(.*?) ?\| ?(.*?) ?\|", text, re.M)
        assert row == (" ".join(f"`{name}`" for name in language.aliases), "yes" if language.is_default else "")
