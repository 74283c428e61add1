"""`rkgrade grade`: programs in files against a problem in a folder, here without a server, or by one elsewhere.

Knows no problem format and no client: the root of the command line hands over the functions that read a problem, and
that have a grader elsewhere do the work.
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

GradeElsewhere = Callable[[str, Path | None, Problem, Sequence[GradeRequest]], Iterator[GradeResult]]
"""Has the grader at a URL, with the token in a file, grade requests whose problem is this one; yields results as they
end, with the `index` of their request, or ends the command.
"""

SOME_FAILED = 1


def grade_command(
    read_problem: ReadProblem, grade_elsewhere: GradeElsewhere, *, is_here: bool = True
) -> Callable[..., None]:
    """The command. `is_here`: whether there is a grader on this machine."""

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
        url: Annotated[
            str | None, typer.Option(metavar="URL", help="Have the grader there do it, not this machine.")
        ] = None,
        token_file: Annotated[
            Path | None, typer.Option(metavar="FILE", help="With --url: holds its token; else RKGRADE_TOKEN.")
        ] = None,
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
        flags = {"data_dir": data_dir, "workers": workers, "insecure_no_cgroup": insecure_no_cgroup}
        _check_place(url, token_file, flags, is_here=is_here)
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
        if url is None:
            results = _grade(problem, requests, flags)
        else:
            results = _graded_elsewhere(grade_elsewhere(url, token_file, problem, requests), requests, problem)
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


def _check_place(url: str | None, token_file: Path | None, flags: dict[str, Any], *, is_here: bool) -> None:
    """End the command where its options do not go together, or there is nobody to grade."""
    if url is None and token_file is not None:
        stop(USAGE_ERROR, "--token-file belongs to --url")
    if url is None and not is_here:
        command = f"{sys.executable} -m pip install 'rkgrade[server]'"
        stop(USAGE_ERROR, f"no grader is installed here: {command}, or name one elsewhere with --url")
    own = next((name for name, value in flags.items() if value is not None), None)
    if url is not None and own is not None:
        stop(USAGE_ERROR, f"--{own.replace('_', '-')} is of grading on this machine: the grader at --url has its own")


def _graded_elsewhere(found: Iterator[GradeResult], requests: Sequence[GradeRequest], problem: Problem) -> list[bytes]:
    """The results in the order of the requests, as JSON; shows progress on stderr."""
    from rich.console import Console

    results = [b""] * len(requests)
    tests = len(problem.tests)
    with _progress(Console(stderr=True), tests * len(requests)) as show:
        for count, result in enumerate(found, 1):
            assert result.index is not None
            results[result.index] = result.model_dump_json().encode()
            show(count * tests)
    return results


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
        stop(
            USAGE_ERROR,
            str(error) if language else f"{path}: the name does not tell the language: say it with --language",
        )
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


def _own_languages(problem: Problem) -> set[str]:
    """Ids of those that the problem's own programs are written in; a name that is none is refused where it is used."""
    from sandbox import languages

    found = set()
    for program in (getattr(problem, "checker", None), getattr(problem, "interactor", None)):
        if (name := getattr(program, "language", None)) is not None:
            with contextlib.suppress(UnknownLanguage):
                found.add(languages.resolve(name).id)
    return found


def _grade(problem: Problem, requests: Sequence[GradeRequest], flags: dict[str, Any]) -> list[bytes]:
    """The results in the order of the requests, as JSON; shows progress on stderr."""
    from rich.console import Console

    from sandbox import host
    from service.commands.pool import Refused, Result, judging
    from service.engines.prepare import graders_of, sandbox_config
    from service.settings import usable_cores
    from service.stores.problems import StoreFull

    chosen = settings(**flags)
    # Made ready for these alone: other languages' headers and archives would take seconds.
    needed = {*(request.language for request in requests), *_own_languages(problem)}
    config = replace(sandbox_config(chosen), languages=frozenset(needed))
    # As Ctrl-C does, so that what runs is cancelled and cleaned up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    results = [b""] * len(requests)
    tests = len(problem.tests)
    try:
        with Console(stderr=True).status("getting compilers ready; the first time takes a while"):
            report = host.prepare(config)
        graders = graders_of(report, config)
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
