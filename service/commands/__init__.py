"""The commands that work on this machine itself, without a server: `grade` and `doctor`.

What each needs is imported when it runs, so that `rkgrade --help` stays quick.
"""

from __future__ import annotations

import typer

from service.commands.doctor import doctor
from service.commands.grade import ReadProblem, grade_command


def build(read_problem: ReadProblem) -> typer.Typer:
    """The commands, to be added to the root."""
    app = typer.Typer()
    app.command("grade")(grade_command(read_problem))
    app.command("doctor")(doctor)
    return app
