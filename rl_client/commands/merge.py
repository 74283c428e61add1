"""`rkgrade merge`: weighted averages of checkpoints, and `rkgrade merge verify`. Needs the extra `merge`.

What computes is imported when it is called for, so that no other command waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from typer.core import TyperGroup

from rl_client.commands.ending import USAGE_ERROR, interruptible, stop
from rl_client.commands.progress import bar_of_bytes
from rl_client.counts import counted
from rl_client.extras import install
from rl_client.merge.errors import CannotWrite, MergeError, OutputTaken
from rl_client.merge.recipes import Recipe, alphas_of, distinct, of_alpha, of_weights

if TYPE_CHECKING:
    from rl_client.merge.output import Output
    from rl_client.merge.verifying import Checked

NOT_AS_WISHED = 1
CANNOT_WRITE = 3


class _WithDefault(TyperGroup):
    """`rkgrade merge LOW HIGH` is `rkgrade merge average LOW HIGH`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["average", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(no_args_is_help=True, cls=_WithDefault)

Checkpoints = Annotated[
    list[Path],
    typer.Argument(metavar="LOW HIGH", help="Folders of safetensors checkpoints; with --weights any number."),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Write DIR/alpha=0.5 and so on.")]
Alpha = Annotated[
    list[float] | None,
    typer.Option("--alpha", metavar="A", help="alpha * HIGH + (1 - alpha) * LOW; any number; repeatable."),
]
Alphas = Annotated[
    list[str] | None,
    typer.Option("--alphas", metavar="FIRST:LAST:STEP", help="Alphas from FIRST to LAST, both included; repeatable."),
]
Weights = Annotated[
    list[str] | None,
    typer.Option("--weights", metavar="W,W,...", help="A weight for each checkpoint, 1 in all; repeatable."),
]
Base = Annotated[
    Path | None,
    typer.Option("--base", metavar="DIR", help="Apply LoRA adapters to this checkpoint; without it they become one."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="NAME", help="A key of config.json, or a file of the tokenizer, that may differ; repeatable."
    ),
]
AllowNotFinite = Annotated[
    bool, typer.Option("--allow-not-finite", help="Count NaN and infinities of the checkpoints, rather than stop.")
]


@app.callback()
def merge_() -> None:
    """Average checkpoints. Such as `rkgrade merge LOW HIGH --alpha 0.5 --out DIR`, then `rkgrade merge verify DIR`."""


@app.command("average")
def average(
    checkpoints: Checkpoints,
    out: Out,
    alpha: Alpha = None,
    alphas: Alphas = None,
    weights: Weights = None,
    base: Base = None,
    allow: Allow = None,
    allow_not_finite: AllowNotFinite = False,
) -> None:
    """Weighted averages of checkpoints, several in one pass. The same command goes on with what was interrupted."""
    _require_extra()
    from rl_client.merge.adapters import read_adapter
    from rl_client.merge.checkpoint import is_adapter
    from rl_client.merge.concatenating import concatenate
    from rl_client.merge.opening import opened
    from rl_client.merge.run import merge

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    try:
        adapters = [path for path in checkpoints if is_adapter(path)]
    except MergeError as error:
        stop(USAGE_ERROR, str(error))
    if adapters and len(adapters) < len(checkpoints):
        stop(USAGE_ERROR, f"{adapters[0]}: is a LoRA adapter, and not all are; give its base as --base")
    if base is not None and not adapters:
        stop(USAGE_ERROR, "--base: is for LoRA adapters, and these are whole checkpoints")
    try:
        recipes = _recipes(len(checkpoints), bool(adapters), alpha, alphas, weights)
    except ValueError as error:
        stop(USAGE_ERROR, str(error))
    try:
        with interruptible("ended; what is whole is kept, and the same command goes on"), ExitStack() as stack:
            watcher = _Watcher(stack.enter_context(bar_of_bytes(console)))
            if adapters and base is None:
                outputs = concatenate([read_adapter(path) for path in adapters], recipes, out, watcher, allow or ())
            else:
                plan = opened(checkpoints, base, recipes, out, allow or (), takes_not_finite=allow_not_finite)
                outputs = merge(stack.enter_context(plan), watcher)
    except (CannotWrite, OutputTaken) as error:
        stop(CANNOT_WRITE, str(error))
    except MergeError as error:
        stop(USAGE_ERROR, str(error))
    _tell(outputs)
    raise typer.Exit(NOT_AS_WISHED if any(one.record and one.record.total_not_finite for one in outputs) else 0)


@app.command("verify")
def verify_(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Merged checkpoints.")],
    tensors: Annotated[
        int, typer.Option("--tensors", min=0, help="Compute so many tensors of each again; 0 is none.")
    ] = 8,
) -> None:
    """Hash merged checkpoints again. Computes some of their tensors anew in fp64, where the inputs are unchanged."""
    _require_extra()
    from rl_client.merge.verifying import verify

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    lines: list[str] = []
    wrong = 0
    with interruptible("ended"), bar_of_bytes(console) as bar:
        watcher = _Watcher(bar)
        for folder in folders:
            try:
                checked = verify(folder, tensors, watcher)
            except MergeError as error:
                wrong += 1
                lines.append(str(error))
            else:
                wrong += bool(checked.faults)
                lines += (f"{folder}: {words}" for words in checked.faults or [_found(checked)])
    for line in lines:
        typer.echo(line)
    raise typer.Exit(NOT_AS_WISHED if wrong else 0)


def _require_extra() -> None:
    if find_spec("ml_dtypes") is None:
        stop(USAGE_ERROR, f"merging is not installed here: {install('merge')}")


class _Watcher:
    """Tells the terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def planned(self, total_bytes: int) -> None:
        self._progress.reset(self._task, total=total_bytes)

    def advanced(self, done_bytes: int) -> None:
        self._progress.advance(self._task, done_bytes)


def _recipes(
    checkpoints: int, of_changes: bool, alpha: list[float] | None, alphas: list[str] | None, weights: list[str] | None
) -> Sequence[Recipe]:
    """Raises ValueError."""
    wanted = [*(alpha or ()), *(one for text in alphas or () for one in alphas_of(text))]
    if checkpoints < 2 and not of_changes:
        raise ValueError("two checkpoints at least are averaged")
    if wanted and checkpoints != 2:
        raise ValueError(f"an alpha is for two checkpoints, LOW and HIGH, not for {checkpoints}: say --weights")
    weighted = (of_weights(text, checkpoints, of_changes=of_changes) for text in weights or ())
    recipes = distinct([*map(of_alpha, wanted), *weighted])
    if not recipes:
        raise ValueError("say what to make: --alpha, --alphas or --weights")
    return recipes


def _tell(outputs: Sequence[Output]) -> None:
    """What was made, on stdout."""
    for output in outputs:
        assert output.record is not None
        counts = output.record.total_not_finite
        words = counted(output.record.tensors, "tensor")
        if output.record.changes:
            same = sum(min(change.unchanged) == 1 for change in output.record.changes.values())
            words += f", {same:,} of them the same in all"
        faults = f"{counts.nan:,} NaN, {counts.infinite:,} infinite, {counts.overflow:,} of these by overflow"
        typer.echo(f"{output.path}: {words}{f'; {faults}' if counts else ''}")


def _found(checked: Checked) -> str:
    again = f"{counted(checked.computed, 'tensor')} computed again" if checked.computed else checked.not_computed
    return f"{counted(checked.files, 'file')} as written; {again}"
