"""`rkgrade grade`: programs in files against a problem in a folder, on this machine, without a server.

Knows no problem format: the root of the command line hands over the function that reads one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from sandbox.errors import HostError, UnknownLanguage
from service.commands.options import GRADER_ERROR, USAGE_ERROR, mistakes, settings, stop
from service.contract import Detail, GradeRequest, GradeResult, Problem, Stop, Taxonomy, problem_id

if TYPE_CHECKING:
    from rich.console import Console

ReadProblem = Callable[[Path], Problem]
"""Reads the problem in a folder, or ends the command."""

SOME_FAILED = 1


def grade_command(read_problem: ReadProblem) -> Callable[..., None]:
    """The command, reading problems by `read_problem`."""

    def grade(
        directory: Annotated[Path, typer.Argument(metavar="PROBLEM_DIR", help="Folder of a Kattis problem package.")],
        programs: Annotated[list[Path], typer.Argument(metavar="PROGRAM...", help="Source files to grade.")],
        language: Annotated[
            str | None, typer.Option(help="Language of all programs. Default: by the end of each name.")
        ] = None,
        stop_at: Annotated[
            Stop, typer.Option("--stop", help="When to skip the tests that remain, in ascending input length.")
        ] = "never",
        taxonomy: Annotated[Taxonomy, typer.Option(help="The rule that names the category.")] = "first_failure",
        detail: Annotated[
            Detail, typer.Option(help="outputs: show what failing tests printed and what the checker said.")
        ] = "verdicts",
        time_factor: Annotated[float, typer.Option(help="Multiplies the CPU limit.")] = 1.0,
        as_json: Annotated[bool, typer.Option("--json", help="Print one GradeResult a line instead.")] = False,
        data_dir: Annotated[Path | None, typer.Option(help="Where compiled programs are kept.")] = None,
        workers: Annotated[int | None, typer.Option(help="Programs graded at once, each on a core of its own.")] = None,
        insecure_no_cgroup: Annotated[
            bool | None, typer.Option("--insecure-no-cgroup", help="Run without cgroups; limits can be evaded.")
        ] = None,
    ) -> None:
        """Grade programs and show their verdicts by input size.

        Exits with 0 where all are accepted, 1 where some are not, 2 where the command cannot be followed, and 3
        where the grader failed.
        """
        problem = read_problem(directory)
        identifier = problem_id(problem)
        requests = [
            _request(
                path,
                language,
                problem=identifier,
                stop=stop_at,
                taxonomy=taxonomy,
                detail=detail,
                time_factor=time_factor,
            )
            for path in programs
        ]
        flags = {"data_dir": data_dir, "workers": workers, "insecure_no_cgroup": insecure_no_cgroup}
        results = _grade(problem, requests, flags)
        if as_json:
            _print(results)
        parsed = [GradeResult.model_validate_json(result) for result in results]
        if not as_json:
            _show(parsed)
        if any(result.category is None for result in parsed):
            raise typer.Exit(GRADER_ERROR)
        if any(result.category != "correct" for result in parsed):
            raise typer.Exit(SOME_FAILED)

    return grade


def _print(results: Sequence[bytes]) -> None:
    try:
        sys.stdout.buffer.writelines(result + b"\n" for result in results)
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered would be tried again, and fail again, when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        stop(USAGE_ERROR, f"stdout: {error.strerror}")


def _request(path: Path, language: str | None, **fields: Any) -> GradeRequest:
    from sandbox import languages

    try:
        chosen = languages.resolve(language or path.suffix.removeprefix("."))
    except UnknownLanguage as error:
        hint = "" if language else f"{path}: the name does not tell the language; say it with --language: "
        stop(USAGE_ERROR, f"{hint}{error}")
    try:
        source = path.read_bytes().decode()
    except OSError as error:
        stop(USAGE_ERROR, f"{path}: {error.strerror}")
    except UnicodeDecodeError as error:
        stop(USAGE_ERROR, f"{path}: not UTF-8: {error.reason} at byte {error.start}")
    try:
        return GradeRequest(language=chosen.id, source=source, id=str(path), **fields)
    except ValidationError as error:
        stop(USAGE_ERROR, f"{path}: {mistakes(error)}")


def _grade(problem: Problem, requests: Sequence[GradeRequest], flags: dict[str, Any]) -> list[bytes]:
    """The results in the order of the requests, as JSON; shows progress on stderr."""
    from rich.console import Console

    from sandbox import host
    from service.commands.pool import Refused, Result, judging
    from service.engines.prepare import graders_of, sandbox_config
    from service.settings import usable_cores
    from service.stores.problems import StoreFull

    chosen = settings(**flags)
    # Made ready for these alone: other languages' headers and archives would take seconds. C++ is for checkers.
    config = replace(sandbox_config(chosen), languages=frozenset({"cpp", *(request.language for request in requests)}))
    # As Ctrl-C does, so that what runs is cancelled and cleaned up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    results = [b""] * len(requests)
    tests = len(problem.tests)
    try:
        graders = graders_of(host.prepare(config), config)
        for request in requests:
            if request.language not in graders:
                stop(USAGE_ERROR, f"{request.id}: the toolchain of {request.language} is not installed")
        cores = usable_cores()[: chosen.workers]
        with (
            judging(problem, requests, config, cores=cores, graders=graders) as events,
            _progress(Console(stderr=True), tests * len(requests)) as show,
        ):
            done = [0] * len(requests)
            for event in events:
                if isinstance(event, Refused):
                    stop(GRADER_ERROR if event.host else USAGE_ERROR, event.reason)
                if isinstance(event, Result):
                    results[event.position] = event.json
                # A program's last word counts for the tests that were skipped, too.
                done[event.position] = tests if isinstance(event, Result) else done[event.position] + 1
                show(sum(done))
    except HostError as error:
        stop(GRADER_ERROR, f"this host cannot grade: {error}\n`rkgrade doctor` examines it point by point.")
    except (OSError, StoreFull) as error:
        stop(GRADER_ERROR, f"this host failed while it graded: {error}")
    except KeyboardInterrupt:
        raise typer.Exit(128 + signal.SIGINT) from None
    return results


@contextlib.contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("tests"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda completed: progress.update(task, completed=completed)


def _show(results: Sequence[GradeResult]) -> None:
    from rich.console import Console

    from service.commands.report import by_input_size, details, headline

    console = Console(highlight=False)
    for number, result in enumerate(results):
        if number:
            console.print()
        console.print(headline(result), soft_wrap=True)
        console.print(by_input_size(result))
        for text in details(result):
            console.print(text, soft_wrap=True)
