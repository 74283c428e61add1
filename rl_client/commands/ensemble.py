"""`rkgrade ensemble`: evaluations of several checkpoints, pooled. Needs the extra `evaluate`.

What computes is imported when it is called for, so that no other command waits for it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from rl_client.commands.ending import USAGE_ERROR, interruptible, stop
from rl_client.datasets.base import DatasetError
from rl_client.datasets.outputs import Output
from rl_client.ensemble.errors import EnsembleError
from rl_client.extras import install

app = typer.Typer()

Runs = Annotated[
    list[str],
    typer.Argument(metavar="[NAME=]FOLDER[@ALPHA]...", help="What rkgrade evaluate wrote, for each checkpoint."),
]
Budget = Annotated[
    int | None,
    typer.Option("--budget", metavar="K", min=1, help="Samples of a problem in all; by default as many as there are."),
]
Allocation = Annotated[
    Literal["uniform", "optimised"],
    typer.Option("--allocation", help="As many samples of each checkpoint, or shares that cover most elsewhere."),
]
Folds = Annotated[
    int, typer.Option("--folds", min=2, max=20, help="Parts of the problems; by all others is chosen what one shows.")
]
Difficulty = Annotated[
    list[str] | None, typer.Option("--difficulty", metavar="NAME", help="Problems of this one alone; repeatable.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the folds and the resamples.")]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write all of it; - is stdout, in place of the tables.")
]


@app.command("ensemble")
def ensemble(
    runs: Runs,
    budget: Budget = None,
    allocation: Allocation = "uniform",
    folds: Folds = 5,
    difficulty: Difficulty = None,
    seed: Seed = 0,
    json_file: Json = None,
) -> None:
    """Pool evaluations of several checkpoints. Tells pass@K at a matched budget, and who solves which problems."""
    if find_spec("numpy") is None:
        stop(USAGE_ERROR, f"ensembles are not installed here: {install('evaluate')}")
    from rl_client.commands import ensemble_tables
    from rl_client.ensemble.report import report_of
    from rl_client.ensemble.runs import read_runs

    try:
        with interruptible("ended"):
            report = report_of(
                read_runs(runs),
                budget=budget,
                allocating=allocation,
                folds=folds,
                difficulties=tuple(dict.fromkeys(difficulty or ())),
                seed=seed,
            )
            if json_file is not None:
                with Output(json_file) as output:
                    output.write_line(report.model_dump_json(indent=2).encode())
    except (DatasetError, EnsembleError) as error:
        stop(USAGE_ERROR, str(error))
    if json_file != Path("-"):
        ensemble_tables.tell(report)
