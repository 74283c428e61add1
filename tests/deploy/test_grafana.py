"""The Grafana board: written by its script, asking for nothing that is not there."""

from __future__ import annotations

import json
import re

import pytest

from deploy.grafana import board
from tests.deploy.test_prometheus import names_in, recorded, told

__all__ = ["told"]

BOARD = json.loads(board.BOARD.read_text())
EXPRESSIONS = [target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", [])]


def test_the_committed_board_is_what_the_script_writes() -> None:
    assert board.BOARD.read_text() == board.text()


@pytest.mark.jail
def test_panels_ask_for_nothing_that_no_service_tells(told: set[str]) -> None:
    asked = {name for expression in EXPRESSIONS for name in names_in(expression)}
    assert asked - told - recorded() == set()


def test_what_is_recorded_is_shown_or_alerted_on() -> None:
    shown = {name for expression in EXPRESSIONS for name in names_in(expression)}
    unseen = {name for name in recorded() if name.startswith("rkgrade:")} - shown
    alerted_on = {f"rkgrade:{name}:ratio_rate5m" for name in ("faulty_grades", "provoked", "request_errors")}
    assert unseen == alerted_on


def test_each_panel_has_a_title_a_number_of_its_own_and_the_boards_data_source() -> None:
    panels = BOARD["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    assert all(panel["title"] for panel in panels)
    charts = [panel for panel in panels if panel["type"] != "row"]
    assert {panel["datasource"]["uid"] for panel in charts} == {"${datasource}"}
    assert all(re.fullmatch("[A-Z]", target["refId"]) for panel in charts for target in panel["targets"])
