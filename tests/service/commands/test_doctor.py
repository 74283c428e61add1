"""`rkgrade doctor` as a user runs it."""

from __future__ import annotations

import json
import re

import pytest

from tests.service.commands.conftest import Run


@pytest.mark.jail
def test_doctor_shows_every_finding(rkgrade: Run) -> None:
    shown, lines = rkgrade("doctor"), rkgrade("doctor", "--json")

    assert (shown.returncode, lines.returncode) == (0, 0)
    findings = [json.loads(line) for line in lines.stdout.splitlines()]
    assert {finding["status"] for finding in findings} <= {"ok", "warning"}
    table = shown.stdout.splitlines()[1:]
    for finding, row in zip(findings, table, strict=True):
        # Figures, such as of free memory, are of the moment.
        found, seen = (re.sub(r"[\d.]+", "", text) for text in (finding["found"], row))
        assert row.startswith(f"{finding['name']} ") and found in seen and row.endswith(finding["remedy"])


def test_doctor_exits_with_1_where_something_fails(rkgrade: Run) -> None:
    done = rkgrade("doctor", "--json", "--data-dir", "/proc/sys/rkgrade")

    assert done.returncode == 1
    findings = {finding["name"]: finding for finding in map(json.loads, done.stdout.splitlines())}
    assert (findings["disk"]["status"], findings["disk"]["found"]) == ("failed", "/proc/sys is not writable")
