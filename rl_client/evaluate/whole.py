"""A whole evaluation, from what it is told to its report: opens what it needs, has it run, and leaves it in a folder.

Knows no terminal and no data set: problems come in as candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rl_client.async_client import AsyncGrader
from rl_client.datasets.base import DatasetError
from rl_client.datasets.importing import Candidate
from rl_client.datasets.outputs import Output
from rl_client.evaluate import run
from rl_client.evaluate.completions import Completions, hash_of
from rl_client.evaluate.errors import BadOption, ServerUnreachable
from rl_client.evaluate.exports import write_evalplus, write_livecodebench
from rl_client.evaluate.grading import Judge
from rl_client.evaluate.report import Report, check_ks, report_of
from rl_client.evaluate.run import Evaluation, Stage
from rl_client.evaluate.server import ModelServer
from rl_client.evaluate.settings import Given, Grading, Manifest, Sampling
from rl_client.evaluate.stores import GENERATIONS, GRADES, Generations, Grades
from rl_client.languages import ids_by_name

REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class Server:
    """Where completions are sampled, and how."""

    url: str
    key: str | None
    model: str | None
    """None: the only one that it has."""
    sampling: Callable[[str], Sampling]
    """The settings, with the model's name."""
    samples: int
    """For each problem."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an evaluation is told."""

    folder: Path
    grader_url: str
    grader_token: str | None
    source: Server | Path
    """A file: of completions."""
    language: str
    grading: Grading
    ks: tuple[int, ...]
    """Those of pass@k; none: the usual ones."""
    requests: int
    """To the model's server, at once."""
    programs: int
    """At the grader, at once."""
    patience_s: float
    fresh: bool = False
    """Whether programs are run also where the grader knows what an earlier run of them came to."""
    livecodebench: Path | None = None
    """Where to write programs in its form."""
    evalplus: Path | None = None


class Watcher(run.Watcher, Protocol):
    """Told of everything as it happens."""

    def others(self, count: int) -> None:
        """So many completions are of problems that are not there."""
        ...


async def evaluate(wanted: Wanted, candidates: Iterable[Candidate], watcher: Watcher) -> Report:
    """`candidates`: read with their statements, where a server is asked.

    Raises DatasetError, EvaluationError, ClientError; what was done by then is kept in the folder.
    """
    if isinstance(wanted.source, Server):
        check_ks(wanted.ks, wanted.source.samples)
    async with AsyncExitStack() as stack:
        # Tools do not wait until programs are graded.
        connections = wanted.programs + wanted.requests
        grader = await stack.enter_async_context(
            AsyncGrader(
                wanted.grader_url,
                token=wanted.grader_token,
                connections=connections,
                patience_s=wanted.patience_s,
            )
        )
        await grader.check()
        language, names = _language(wanted.language, ids_by_name(await grader.languages()))
        server = None
        if isinstance(wanted.source, Server):
            server = await stack.enter_async_context(
                ModelServer(
                    wanted.source.url,
                    key=wanted.source.key,
                    connections=wanted.requests,
                    patience_s=wanted.patience_s,
                )
            )
        manifest = Manifest(
            language=language,
            source=await _source(wanted.source, server, wanted.folder),
            grading=wanted.grading,
            samples=wanted.source.samples if isinstance(wanted.source, Server) else None,
        )
        make(wanted.folder)
        judge = Judge(grader, language, names, wanted.grading, fresh=wanted.fresh)
        generations = stack.enter_context(Generations(wanted.folder / GENERATIONS, judge.hash))
        grades = stack.enter_context(Grades(wanted.folder / GRADES))
        manifest.keep(wanted.folder, is_begun=bool(len(generations)))
        stage = Stage(server, wanted.requests, grader, wanted.programs)
        evaluation = Evaluation(manifest, stage, judge, generations, grades, watcher)
        await evaluation.read(candidates)
        if isinstance(wanted.source, Path):
            completions = Completions(wanted.source, evaluation.tasks.values())
            evaluation.take(completions)
            watcher.others(completions.others)
        ks = check_ks(wanted.ks, evaluation.fewest())
        # What is sampled already needs no server to be graded.
        if server is not None and evaluation.missing():
            await _check(manifest, server, grader)
        await evaluation.run()
        report = report_of(manifest, evaluation.results(), ks)
        with Output(wanted.folder / REPORT) as output:
            output.write_line(report.model_dump_json(indent=2).encode())
        if wanted.livecodebench is not None:
            write_livecodebench(wanted.livecodebench, evaluation.programs())
        if wanted.evalplus is not None:
            write_evalplus(wanted.evalplus, evaluation.programs())
    return report


def _language(name: str, ids: dict[str, str]) -> tuple[str, set[str]]:
    """The grader's id of it, and all of its names. Raises BadOption."""
    found = ids.get(name.lower())
    if found is None:
        raise BadOption(f"--language: the grader has no {name!r}; it has {', '.join(sorted(set(ids.values())))}")
    return found, {one for one, id in ids.items() if id == found}


async def _source(source: Server | Path, server: ModelServer | None, folder: Path) -> Sampling | Given:
    """Raises DatasetError of a file, ServerError, and BadOption where a server has several models, or does not say."""
    if isinstance(source, Path):
        return Given(completions=hash_of(source))
    if source.model is not None:
        return source.sampling(source.model)
    assert server is not None
    begun = Manifest.model_in(folder)
    try:
        models = await server.models(None if begun is None else 0)
    except ServerUnreachable:
        if begun is None:
            raise
        # What is sampled already can be graded without it; for the rest it is waited for, and asked what it has.
        return source.sampling(begun)
    if len(models) != 1:
        known = f"the server has {', '.join(models)}" if models else "the server does not say which it has"
        raise BadOption(f"--model: {known}: say which")
    return source.sampling(models[0])


async def _check(manifest: Manifest, server: ModelServer, grader: AsyncGrader) -> None:
    """Whether both have what is to be asked for. Raises ServerError, GraderError, and BadOption."""
    assert isinstance(manifest.source, Sampling)
    models, model = await server.models(), manifest.source.model
    if models and model not in models:
        raise BadOption(f"--model: the server has no {model!r}; it has {', '.join(models)}")
    if manifest.source.setting == "agentic":
        await grader.check_sessions()


def make(folder: Path) -> None:
    """With those above it. Raises DatasetError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatasetError(folder, error.strerror or str(error)) from error
