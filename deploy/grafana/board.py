"""Writes the Grafana dashboard `rkgrade.json` beside this file: `python -m deploy.grafana.board` in the checkout.

What it shows comes from the recording rules in `deploy/prometheus/rules`, as far as there are any, so that boards and
alerts say the same. A test holds the committed file to what this prints.
"""

from __future__ import annotations

import json
import string
from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import DataSourceRef

BOARD = Path(__file__).with_name("rkgrade.json")

_PROMETHEUS = DataSourceRef(type_val="prometheus", uid="${datasource}")

_Panel = stat.Panel | timeseries.Panel

_HALF, _THIRD, _QUARTER = 12, 8, 6
_HEIGHT, _STAT_HEIGHT = 8, 4


def _query(expression: str, legend: str, reference: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(reference)


def _stat(title: str, text: str, expression: str, unit: str = "short") -> stat.Panel:
    return (
        stat.Panel()
        .title(title)
        .description(text)
        .unit(unit)
        .span(_QUARTER)
        .height(_STAT_HEIGHT)
        .datasource(_PROMETHEUS)
        .with_target(_query(expression, "__auto", "A"))
    )


def _chart(
    title: str, text: str, unit: str, *queries: tuple[str, str], span: int = _HALF, stacked: bool = False
) -> timeseries.Panel:
    panel = (
        timeseries.Panel()
        .title(title)
        .description(text)
        .unit(unit)
        .min(0)
        .span(span)
        .height(_HEIGHT)
        .datasource(_PROMETHEUS)
        .legend(
            common.VizLegendOptions().display_mode(kinds.LegendDisplayMode.LIST).placement(kinds.LegendPlacement.BOTTOM)
        )
    )
    if stacked:
        panel = panel.fill_opacity(30).stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL))
    for reference, (expression, legend) in zip(string.ascii_uppercase, queries, strict=False):
        panel = panel.with_target(_query(expression, legend, reference))
    return panel


def _now() -> list[_Panel]:
    return [
        _stat("Workers", "Able to grade", "rkgrade:workers_alive"),
        _stat("Busy", "With a grade in hand", "rkgrade:workers_busy / rkgrade:workers_alive", "percentunit"),
        _stat("Waiting", "Grades in the queue", "rkgrade:queue_length"),
        _stat("Longest wait", "Age of the queue's oldest grade", "rkgrade:queue_age_seconds", "s"),
    ]


def _traffic() -> list[_Panel]:
    return [
        _chart(
            "Grades by verdict",
            "As clients got them",
            "ops",
            ("sum by (verdict) (rkgrade:grades:rate5m)", "{{verdict}}"),
            stacked=True,
        ),
        _chart(
            "Grades by category",
            "`none`: the grader's or a checker's fault",
            "ops",
            ("sum by (category) (rkgrade:grades:rate5m)", "{{category}}"),
            stacked=True,
        ),
        _chart(
            "Grades by language",
            "",
            "ops",
            ("sum by (language) (rkgrade:grades:rate5m)", "{{language}}"),
            span=_QUARTER,
        ),
        _chart("Tests", "", "ops", ("sum(rkgrade:tests:rate5m)", "tests"), span=_QUARTER),
        _chart(
            "Requests by client",
            "Where tokens are asked for",
            "reqps",
            ('sum by (client) (rate(rkgrade_requests_total{job="rkgrade-api"}[5m]))', "{{client}}"),
            span=_QUARTER,
        ),
        _chart(
            "Answers by status",
            "",
            "reqps",
            ("sum by (status) (rkgrade:requests:rate5m)", "{{status}}"),
            span=_QUARTER,
        ),
        _chart(
            "Single runs",
            "Of `POST /run`, by how they ended",
            "ops",
            ('sum by (status) (rate(rkgrade_runs_total{job="rkgrade-api"}[5m]))', "{{status}}"),
            span=_THIRD,
            stacked=True,
        ),
        _chart("Sessions", "", "short", ("sum(rkgrade_sessions_open)", "open"), span=_THIRD),
        _chart(
            "Sessions and their commands",
            "Commands run, and sessions that ended, by why",
            "ops",
            ("sum(rate(rkgrade_session_commands_total[5m]))", "commands"),
            ("sum by (end) (rate(rkgrade_sessions_total[5m]))", "ended: {{end}}"),
            span=_THIRD,
        ),
    ]


def _time() -> list[_Panel]:
    return [
        _chart(
            "Requests",
            "From first byte to last, by route",
            "s",
            ("rkgrade:request_seconds:p50_5m", "{{route}} p50"),
            ("rkgrade:request_seconds:p99_5m", "{{route}} p99"),
        ),
        _chart(
            "Waiting and working",
            "Waiting never counts against a program",
            "s",
            ("rkgrade:queue_seconds:p50_5m", "wait p50"),
            ("rkgrade:queue_seconds:p99_5m", "wait p99"),
            ("rkgrade:compile_seconds:p99_5m", "compile p99"),
            ("rkgrade:run_seconds:p99_5m", "run p99"),
        ),
        _chart(
            "Queue",
            "",
            "short",
            ("rkgrade:queue_length", "waiting"),
            ("rkgrade:workers_alive", "workers"),
            ("rkgrade:workers_busy", "busy"),
            span=_THIRD,
        ),
        _chart(
            "CPU time in wall time",
            "Near 1 where programs compute and have a core each; low where they sleep, or wait for a core",
            "percentunit",
            ("rkgrade:program_cpu:ratio_rate5m", "{{language}}"),
            span=_THIRD,
        ),
        _chart(
            "Caches",
            "Share of hits",
            "percentunit",
            ("rkgrade:compile_cache_hits:ratio_rate5m", "compiled programs"),
            ("rkgrade:problem_cache_hits:ratio_rate5m", "loaded problems"),
            ("rkgrade:verdict_cache_hits:ratio_rate5m", "results"),
            span=_THIRD,
        ),
    ]


def _faults() -> list[_Panel]:
    return [
        _chart(
            "Faults by cause",
            "Tests and workers lost to us",
            "ops",
            ("rkgrade:faults:rate5m", "{{cause}}"),
            span=_THIRD,
        ),
        _chart(
            "Faults in the sandbox",
            "Tried again once each: most never reach a result",
            "short",
            ("sum by (cause, instance) (increase(rkgrade_sandbox_faults_total[5m]))", "{{cause}} {{instance}}"),
            span=_THIRD,
        ),
        _chart(
            "Refused",
            "",
            "reqps",
            ('sum by (type) (rate(rkgrade_refused_total{job="rkgrade-api"}[5m]))', "{{type}}"),
            ('sum(rate(rkgrade_cancelled_total{job="rkgrade-api"}[5m]))', "client left"),
            span=_THIRD,
        ),
        _chart(
            "Tests run again",
            "Limit failures while others had the core",
            "percentunit",
            ("rkgrade:reruns:ratio_rate5m", "of all tests"),
            span=_THIRD,
        ),
        _chart(
            "Kills for memory",
            "`limit`: the program's own; `host`: ours to mend",
            "short",
            ("sum by (by, instance) (increase(rkgrade_oom_kills_total[5m]))", "{{by}} {{instance}}"),
            span=_THIRD,
        ),
        _chart(
            "Shared caches that fail",
            "Results and compiled programs: grading goes on without",
            "short",
            ("sum by (cache, instance) (increase(rkgrade_cache_faults_total[5m]))", "{{cache}} {{instance}}"),
            span=_THIRD,
        ),
    ]


def _hosts() -> list[_Panel]:
    return [
        _chart(
            "Cells alive",
            "One warm for each worker, and those at work",
            "short",
            ("rkgrade_cells_alive", "{{instance}}"),
        ),
        _chart(
            "Cells started", "", "ops", ("sum by (instance) (rate(rkgrade_cells_started_total[5m]))", "{{instance}}")
        ),
        _chart(
            "Leftovers swept",
            "Groups of graders that died",
            "short",
            ("increase(rkgrade_leftovers_swept_total[1h])", "{{instance}}"),
            span=_THIRD,
        ),
        _chart(
            "Memory",
            "Of the API or of the process over the workers",
            "bytes",
            ('process_resident_memory_bytes{job=~"rkgrade-api|rkgrade-worker"}', "{{instance}}"),
            span=_THIRD,
        ),
        _chart(
            "Descriptors",
            "",
            "percentunit",
            ('process_open_fds{job=~"rkgrade-api|rkgrade-worker"} / process_max_fds', "{{instance}}"),
            span=_THIRD,
        ),
    ]


def board() -> dashboard.Dashboard:
    """The whole board; rows in the order in which questions come up."""
    made = (
        dashboard.Dashboard("rkgrade")
        .uid("rkgrade")
        .tags(["rkgrade"])
        .description(
            "Grades, queue, faults and hosts of an rkgrade installation. What alerts mean: docs/operations.md."
        )
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    for title, panels in (
        ("Now", _now()),
        ("Traffic", _traffic()),
        ("Time", _time()),
        ("Faults", _faults()),
        ("Hosts", _hosts()),
    ):
        made = made.with_row(dashboard.Row(title))
        for panel in panels:
            made = made.with_panel(panel)
    return made


def text() -> str:
    built = board().build()
    # Grafana numbers them on loading; fixed numbers make links to a panel last.
    for number, panel in enumerate(built.panels or [], 1):
        panel.id_val = number
    return json.dumps(built, cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    BOARD.write_text(text())
