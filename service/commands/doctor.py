"""`rkgrade doctor`: what the host lacks for running programs, and how to mend it. Shows `sandbox.doctor`'s findings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from service.commands.options import settings


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Where stored problems would be kept.")] = None,
) -> None:
    """Examine this host. Exits with 1 where something fails that programs need to run."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from sandbox.doctor import examine
    from sandbox.findings import Status
    from service.engines.prepare import sandbox_config

    style = {Status.OK: "green", Status.WARNING: "yellow", Status.FAILED: "bold red"}
    table = Table("check", "", "found", "to mend it", box=None, pad_edge=False)
    failed = False
    for finding in examine(sandbox_config(settings(data_dir=data_dir))):
        failed = failed or finding.status is Status.FAILED
        if as_json:
            print(json.dumps(dataclasses.asdict(finding)), flush=True)
        status = Text(finding.status, style[finding.status])
        table.add_row(finding.name, status, Text(finding.found), Text(finding.remedy))
    if not as_json:
        out = Console()
        if out.is_terminal:
            out.print(table)
        else:
            # Into a pipe or a file each row is a line.
            out.width = 10_000
            with out.capture() as printed:
                out.print(table)
            print("\n".join(line.rstrip() for line in printed.get().splitlines()))
    if failed:
        raise typer.Exit(1)
