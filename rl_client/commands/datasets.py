"""`rkgrade import`: other people's problems as Problem JSON on stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl_client.datasets import kattis
from rl_client.datasets.base import DatasetError
from service.contract import Problem

app = typer.Typer(no_args_is_help=True)


@app.callback()
def import_() -> None:
    """Print problems of other formats as JSON, ready for PUT /problems."""


@app.command("kattis")
def import_kattis(
    directory: Annotated[Path, typer.Argument(help="Folder of the package: problem.yaml, data/ ...")],
) -> None:
    """Print the problem in a Kattis package."""
    typer.echo(read_kattis(directory).model_dump_json(exclude_none=True))


def read_kattis(directory: Path) -> Problem:
    """The problem in a Kattis package; ends the command where there is none that can be read."""
    try:
        return kattis.read_package(directory)
    except DatasetError as error:
        typer.echo(f"rkgrade: {error}", err=True)
        raise typer.Exit(2) from None
