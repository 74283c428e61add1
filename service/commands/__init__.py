"""The commands that work without a server on this machine: `grade` and `doctor`.

What each needs is imported when it runs, so that `rkgrade --help` stays quick.
"""

from __future__ import annotations

import typer

from service.commands.doctor import doctor
from service.commands.grade import GradeElsewhere, ReadProblem, grade_command

__all__ = ["build", "grade_command"]


def build(read_problem: ReadProblem, grade_elsewhere: GradeElsewhere) -> typer.Typer:
    """The commands, to be added to the root."""
    app = typer.Typer()
    app.command("grade")(grade_command(read_problem, grade_elsewhere))
    app.command("doctor")(doctor)
    return app
