"""`rkgrade frontier`: checkpoints along a line of averages, between two kinds of failure. `draw` draws evaluations that
are done; one command for each set, as `rkgrade evaluate` has them, does these first. Needs the extra `frontier`.

What computes is imported when it is called for, so that no other command waits for it.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rl_client.commands import running, sources
from rl_client.commands.ending import GRADER_ERROR, SOME_SKIPPED, USAGE_ERROR, interruptible, stop
from rl_client.commands.evaluate import command_of
from rl_client.commands.evaluate_board import Board
from rl_client.commands.sources import Rows
from rl_client.datasets.base import DatasetError, Reader, readers
from rl_client.errors import ClientError
from rl_client.evaluate.errors import EvaluationError, ServerError
from rl_client.extras import install
from rl_client.merge.recipes import of_alpha

if TYPE_CHECKING:
    from rl_client.evaluate.whole import Wanted

app = typer.Typer(no_args_is_help=True)

Finished = Annotated[
    list[str],
    typer.Argument(metavar="[NAME=]FOLDER[@ALPHA]...", help="Of rkgrade evaluate; without ALPHA: trained otherwise."),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Write figures, tables and the page there.")]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="ALPHA=URL", help="A server that is there; NAME=URL: trained otherwise; repeatable."),
]
Checkpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--checkpoint", metavar="[NAME=]FOLDER[@ALPHA]", help="For --serve, such as merged/alpha=0.5; repeatable."
    ),
]
Serve = Annotated[
    str | None,
    typer.Option(
        "--serve", metavar="COMMAND", help="Starts a server: 'vllm serve {checkpoint} --port {port}'; no shell runs it."
    ),
]
RunOfEach = Annotated[
    str | None,
    typer.Option("--run", metavar="NAME", help="Part of what seeds are made from, beside each checkpoint's name."),
]
ServeWithin = Annotated[
    float, typer.Option("--serve-within", min=1, help="Seconds that a server has until it lists its models.")
]

#: What an evaluation is told otherwise here, or what is not for several of them.
_NOT_HERE = ("server", "completions", "skipped_file", "livecodebench", "evalplus")


@app.callback()
def frontier() -> None:
    """Draw checkpoints between two kinds of failure. Tests whether averages extend what was trained."""


@app.command("draw")
def draw_(runs: Finished, out: Out) -> None:
    """Draw evaluations that are done."""
    _check_installed()
    with interruptible("ended"):
        _draw(runs, out)


@dataclass(frozen=True, slots=True)
class _Point:
    """A checkpoint that is to be evaluated."""

    name: str
    """Of its folder."""
    alpha: float | None
    url: str | None
    """None: of one that is to be served."""
    checkpoint: Path = Path()


def _command(reader: Reader) -> Callable[..., None]:
    """The command of a set: that of `rkgrade evaluate`, for several checkpoints."""

    def command(
        out: Path, at: list[str] | None, checkpoints: list[str] | None, serve: str | None, within_s: float, **rest: Any
    ) -> None:
        _check_installed()
        points = _points(at or (), checkpoints or (), serve)
        told: list[tuple[Rows, Wanted]] = []
        evaluation = command_of(reader, lambda rows, wanted, _: told.append((rows, wanted)))
        run = rest.pop("run", None)
        for point in points:
            # Seeds of its own, whatever its server calls it: samples of two checkpoints are taken for independent.
            seeds = point.name if run is None else f"{run} {point.name}"
            # Where a server will be is known when it is started.
            evaluation(out=out / point.name, server=point.url or "http://127.0.0.1", run=seeds, **rest)
        kept = f"what was done is kept in {out}, and the same command goes on"
        skips = 0
        with interruptible(f"ended; {kept}"):
            for point, (rows, wanted) in zip(points, told, strict=True):
                try:
                    skips += running.run(_evaluated(point, rows, wanted, serve or "", within_s))
                except (ServerError, ClientError) as error:
                    stop(GRADER_ERROR, f"{point.name}: {error}; {kept}")
                except (DatasetError, EvaluationError) as error:
                    stop(USAGE_ERROR, f"{point.name}: {error}")
            _draw([_written(point, out) for point in points], out)
        raise typer.Exit(SOME_SKIPPED if skips else 0)

    ours = {"out": Out, "at": At, "checkpoints": Checkpoints, "serve": Serve, "within_s": ServeWithin}
    defaults = {"at": None, "checkpoints": None, "serve": None, "within_s": 1800.0}
    theirs = inspect.signature(command_of(reader, lambda *_: None), eval_str=True).parameters
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    shown = [
        one.replace(annotation=RunOfEach) if name == "run" else one
        for name, one in theirs.items()
        if name not in ours and name not in _NOT_HERE
    ]
    shown += [
        inspect.Parameter(name, kind, annotation=annotation, default=defaults.get(name, inspect.Parameter.empty))
        for name, annotation in ours.items()
    ]
    shown.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__doc__ = f"{reader.title}."
    return command


for _name, _reader in readers().items():
    if _reader.statement is not None:
        app.command(_name)(_command(_reader))


def _points(at: Sequence[str], checkpoints: Sequence[str], serve: str | None) -> list[_Point]:
    """Ends the command where they cannot be told apart, or nothing serves them."""
    from rl_client.ensemble.errors import BadRun
    from rl_client.ensemble.runs import Named
    from rl_client.frontier.serving import argv_of

    if bool(checkpoints) != (serve is not None):
        stop(USAGE_ERROR, "--checkpoint and --serve go together: which to serve, and how")
    points = [_at(text) for text in at]
    try:
        for text in checkpoints:
            named = Named.of(text)
            points.append(_Point(named.name, named.alpha, None, named.folder.resolve()))
        if serve is not None:
            argv_of(serve, Path("checkpoint"), 1)
    except (BadRun, EvaluationError) as error:
        stop(USAGE_ERROR, str(error) if isinstance(error, EvaluationError) else f"--checkpoint: {error}")
    if len(points) < 2:
        stop(USAGE_ERROR, "a frontier has two checkpoints at least: say --at ALPHA=URL, or --checkpoint and --serve")
    for name, count in Counter(point.name for point in points).items():
        if count > 1:
            stop(USAGE_ERROR, f"{name} is given twice: say NAME= before one of them")
        if "/" in name or name in (".", ".."):
            stop(USAGE_ERROR, f"{name!r} is a folder's name, and cannot have a / in it")
    return points


def _at(text: str) -> _Point:
    name, equals, url = text.partition("=")
    if not equals or not name or not url:
        stop(USAGE_ERROR, f"--at: needs ALPHA=URL or NAME=URL, not {text!r}")
    url = sources.grader("--at", url)
    try:
        alpha = float(name)
    except ValueError:
        return _Point(name, None, url)
    if not math.isfinite(alpha):
        stop(USAGE_ERROR, f"--at: alpha must be a finite number, not {name!r}")
    return _Point(of_alpha(alpha).name, alpha, url)


def _written(point: _Point, out: Path) -> str:
    """As `draw` is told of its evaluation."""
    return str(out / point.name) + ("" if point.alpha is None else f"@{point.alpha!r}")


async def _evaluated(point: _Point, rows: Rows, wanted: Wanted, serve: str, within_s: float) -> int:
    """Evaluate it, starting a server for as long as one is needed; the number of rows that are no problems.

    Raises DatasetError, EvaluationError, ClientError.
    """
    from rl_client.evaluate.whole import Server, evaluate, make
    from rl_client.frontier.serving import served

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

    async def done(wanted: Wanted) -> int:
        with Board(console, None, rows.total_bytes) as board, closing(rows.candidates(statements=True)) as candidates:
            report = await evaluate(wanted, candidates, board)
        return board.skips + report.faults

    assert isinstance(wanted.source, Server)
    if point.url is not None:
        console.print(f"{point.name}: {point.url}")
        return await done(wanted)
    model = _sampled_model(wanted)
    if model is not None:
        # All is sampled, and no server need be started for that; the folder is held to the settings all the same.
        try:
            return await done(replace(wanted, source=replace(wanted.source, model=model), patience_s=0))
        except (ServerError, ClientError):
            pass
    make(wanted.folder)
    with served(serve, point.checkpoint, wanted.folder / "server.log") as server:
        console.print(f"{point.name}: starting a server at {server.url}")
        await server.healthy(within_s, wanted.source.key)
        return await server.during(done(replace(wanted, source=replace(wanted.source, url=server.url))))


def _sampled_model(wanted: Wanted) -> str | None:
    """The model whose samples the folder has, as far as its report goes; None where some are missing."""
    from rl_client.evaluate.report import Report
    from rl_client.evaluate.settings import Sampling
    from rl_client.evaluate.whole import REPORT, Server

    assert isinstance(wanted.source, Server)
    try:
        report = Report.model_validate_json((wanted.folder / REPORT).read_bytes())
    except (OSError, ValueError):
        return None
    source = report.manifest.source
    is_whole = all(one.samples >= wanted.source.samples for one in report.problems)
    return source.model if isinstance(source, Sampling) and is_whole else None


def _draw(runs: Sequence[str], out: Path) -> None:
    """Draw what is done, and say what it shows; ends the command where it cannot be drawn."""
    from rl_client.ensemble.errors import EnsembleError
    from rl_client.ensemble.runs import read_runs
    from rl_client.frontier.drawing import PAGE, draw
    from rl_client.frontier.findings import explained

    try:
        findings = draw(read_runs(runs), out)
    except (DatasetError, EnsembleError) as error:
        stop(USAGE_ERROR, str(error))
    for test in findings.tests:
        typer.echo(test.words)
    typer.echo(explained())
    typer.echo(f"{out / PAGE}: figures, tables and problems")


def _check_installed() -> None:
    """Ends the command where the extra is missing."""
    if find_spec("numpy") is None or find_spec("matplotlib") is None:
        stop(USAGE_ERROR, f"frontiers are not installed here: {install('frontier')}")
