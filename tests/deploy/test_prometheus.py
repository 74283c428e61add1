"""What Prometheus is given: it is taken by its own tools, and asks for nothing that this service does not tell."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.serving import Server

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = sorted((PROMETHEUS / "rules").glob("*.yml"))


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules(kind: str) -> list[dict[str, Any]]:
    """Every rule of that kind, `record` or `alert`."""
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


def names_in(expression: str) -> set[str]:
    """Metrics that an expression names, as they are called in the text format's TYPE lines."""
    without_strings = re.sub(r'"[^"]*"', "", expression)
    names = re.findall(r"\b(?:rkgrade_|process_)\w+|\brkgrade:[\w:]+", without_strings)
    return {re.sub(r"_(total|bucket|count)$", "", name) for name in names}


def recorded() -> set[str]:
    return {rule["record"] for rule in rules("record")}


@pytest.fixture(scope="module")
def told(grader: Server) -> set[str]:
    """The metrics of a running service."""
    exposition = httpx.get(f"{grader.url}/metrics").text
    return {name.removesuffix("_total") for name in re.findall(r"^# TYPE (\S+)", exposition, re.M)}


def test_prometheus_takes_the_scrape_configuration_and_the_rules() -> None:
    promtool("check", "config", PROMETHEUS / "prometheus.yml")
    promtool("check", "rules", *RULES)


def test_rules_come_to_what_they_should() -> None:
    promtool("test", "rules", *sorted((PROMETHEUS / "tests").glob("*.yml")))


@pytest.mark.parametrize("kind", ["record", "alert"])
def test_every_rule_is_tested(kind: str) -> None:
    tests = [
        test for path in (PROMETHEUS / "tests").glob("*.yml") for test in yaml.safe_load(path.read_text())["tests"]
    ]
    if kind == "record":
        asked = " ".join(case["expr"] for test in tests for case in test.get("promql_expr_test", []))
        assert recorded() - names_in(asked) == set()
    else:
        cases = [case for test in tests for case in test.get("alert_rule_test", [])]
        fired = {case["alertname"] for case in cases if case["exp_alerts"]}
        quiet = {case["alertname"] for case in cases if not case["exp_alerts"]}
        assert fired == quiet == {rule["alert"] for rule in rules("alert")}


@pytest.mark.jail
def test_rules_ask_for_nothing_that_no_service_tells(told: set[str]) -> None:
    asked = {name for kind in ("record", "alert") for rule in rules(kind) for name in names_in(rule["expr"])}
    assert asked - told - recorded() == set()


@pytest.mark.jail
def test_what_the_service_tells_is_documented(told: set[str]) -> None:
    documented = names_in(re.sub(r'"\w+"', "", (ROOT / "docs" / "operations.md").read_text()))
    ours = {name for name in told if name.startswith("rkgrade_") and not name.endswith("_created")}
    assert ours - documented == set()


def test_each_alert_has_its_section_of_the_runbook_and_names_it() -> None:
    sections = re.findall(r"^### (\w+)$", (ROOT / "docs" / "operations.md").read_text(), re.M)
    assert sections == [rule["alert"] for rule in rules("alert")]
    for rule in rules("alert"):
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{rule['alert'].lower()}"


def test_rules_tell_jobs_apart_by_the_names_that_are_scraped() -> None:
    scraped = {job["job_name"] for job in yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]}
    asked = {
        name
        for path in RULES
        for found in re.findall(r'job=~?"([\w|-]+)"', path.read_text())
        for name in found.split("|")
    }
    assert asked == scraped
