"""`rkgrade evaluate`: a model's answers to the problems of a data set, sampled and graded. One command for each set
whose rows say what a model is to do. Needs the extra `evaluate`.

What computes is imported when it is called for, so that no other command waits for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

from rl_client.commands import evaluate_tables, sources
from rl_client.commands.ending import GRADER_ERROR, SOME_SKIPPED, USAGE_ERROR, interruptible, stop
from rl_client.commands.evaluate_board import Board
from rl_client.commands.sources import Files, Limit, Offset, PresetOption, Rows, Split, Tests, TokenFile
from rl_client.datasets.base import DatasetError, Reader, readers
from rl_client.datasets.outputs import Output
from rl_client.errors import ClientError, TokenError
from rl_client.evaluate.errors import EvaluationError, ServerError
from rl_client.evaluate.prompts import TEMPLATES, Template, template_of
from rl_client.evaluate.settings import Api, Given, Grading, Manifest, Sampling, Setting
from rl_client.patience import PATIENCE_S
from rl_client.token import read_token
from service.contract import Extraction, LengthUnit, Taxonomy

if TYPE_CHECKING:
    from rl_client.evaluate.report import Report
    from rl_client.evaluate.server import ModelServer

app = typer.Typer(no_args_is_help=True)

KEY_VARIABLE = "OPENAI_API_KEY"
REPORT = "report.json"

#: Fields of a request that options and the sampling itself decide on.
_OWN_FIELDS = {"model", "messages", "prompt", "n", "seed", "temperature", "top_p", "max_tokens", "stop", "stream"}

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Keep everything there; the same command goes on.")]
Url = Annotated[str, typer.Option("--url", help="The grader.")]
ServerUrl = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="A server of OpenAI's API, such as http://127.0.0.1:9000/v1."),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="As the server calls it; by default the only one it has.")
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key-file", metavar="FILE", help=f"Holds the key that the server asks for; else {KEY_VARIABLE}."),
]
CompletionsFile = Annotated[
    Path | None,
    typer.Option("--completions", metavar="FILE", help="Grade these, JSON lines of key and completion; ask no server."),
]
Run = Annotated[
    str | None,
    typer.Option("--run", metavar="NAME", help="Part of what seeds are made from; by default the model's name."),
]
ApiOption = Annotated[Api, typer.Option("--api", help="Which of the server's endpoints to ask.")]
SettingOption = Annotated[
    Setting, typer.Option("--setting", help="One answer; calls of Python before it; work in a terminal.")
]
TemplateOption = Annotated[
    str | None,
    typer.Option("--template", metavar="NAME|FILE", help=f"Of the prompt: {', '.join(TEMPLATES)}, or a file."),
]
Samples = Annotated[int, typer.Option("--samples", min=1, help="For each problem; may be more the next time.")]
Chunk = Annotated[int, typer.Option("--chunk", min=1, max=1024, help="Samples that one request asks for.")]
Temperature = Annotated[float, typer.Option(min=0, help="Of sampling.")]
TopP = Annotated[float, typer.Option("--top-p", min=0, max=1, help="Of sampling.")]
MaxTokens = Annotated[int, typer.Option("--max-tokens", min=1, help="Of one answer.")]
StopAt = Annotated[list[str] | None, typer.Option("--stop", metavar="TEXT", help="Answers end there; repeatable.")]
Extra = Annotated[str, typer.Option("--extra", metavar="JSON", help='Further fields of each request: {"top_k": 20}.')]
Calls = Annotated[int, typer.Option("--calls", min=1, help="Of tools, in one rollout.")]
Language = Annotated[str, typer.Option("--language", help="Of the programs.")]
ExtractionOption = Annotated[Extraction, typer.Option("--extraction", help="Which part of an answer is its program.")]
TaxonomyOption = Annotated[Taxonomy, typer.Option("--taxonomy", help="The rule that names how a program failed.")]
TimeFactor = Annotated[float, typer.Option(min=0.01, max=100, help="Multiplies the CPU limits.")]
Unit = Annotated[LengthUnit, typer.Option("--length-unit", help="What the groups of R_k are counted in.")]
Ks = Annotated[list[int] | None, typer.Option("--k", min=1, help="Tell pass@k; repeatable; by default 1, 5, 10 ...")]
Concurrency = Annotated[int, typer.Option(min=1, max=4096, help="Requests on their way to the model's server at once.")]
Programs = Annotated[int, typer.Option("--programs", min=1, max=1024, help="Programs at the grader at once.")]
Seconds = Annotated[
    float, typer.Option("--patience", min=0, help="Seconds for which a busy or absent server or grader is asked again.")
]
SkippedFile = Annotated[
    Path | None, typer.Option("--skipped", metavar="FILE", help="Write which rows were skipped, one JSON a line.")
]
ToLivecodebench = Annotated[
    Path | None,
    typer.Option("--livecodebench", metavar="FILE", help="Write the programs as its custom_evaluator reads them."),
]
ToEvalplus = Annotated[
    Path | None, typer.Option("--evalplus", metavar="FILE", help="Write the programs as evalplus.evaluate reads them.")
]


@dataclass(frozen=True, slots=True)
class _Options:
    """What an evaluation is told that its manifest does not have."""

    out: Path
    url: str
    token: str | None
    server: str | None
    model: str | None
    key: str | None
    completions: Path | None
    language: str
    ks: list[int]
    concurrency: int
    programs: int
    patience_s: float
    skipped: Path | None
    livecodebench: Path | None
    evalplus: Path | None


@app.callback()
def evaluate() -> None:
    """Sample a model on the problems of a data set, grade what it says, and tell what that comes to."""


def _command(reader: Reader) -> Callable[..., None]:
    """The command of a set."""

    def command(
        paths: Files,
        out: Out,
        url: Url = "http://127.0.0.1:8000",
        token_file: TokenFile = None,
        server: ServerUrl = None,
        model: Model = None,
        key_file: KeyFile = None,
        completions: CompletionsFile = None,
        run: Run = None,
        api: ApiOption = "chat",
        setting: SettingOption = "reasoning",
        template: TemplateOption = None,
        samples: Samples = 10,
        chunk: Chunk = 16,
        temperature: Temperature = 1.0,
        top_p: TopP = 0.95,
        max_tokens: MaxTokens = 16_384,
        stop_at: StopAt = None,
        extra: Extra = "{}",
        calls: Calls = 16,
        language: Language = "python",
        extraction: ExtractionOption = "last_fence",
        taxonomy: TaxonomyOption = "first_failure",
        time_factor: TimeFactor = 1.0,
        length_unit: Unit = "bytes",
        ks: Ks = None,
        concurrency: Concurrency = 32,
        programs: Programs = 32,
        patience_s: Seconds = PATIENCE_S,
        preset: PresetOption = "official",
        tests: Tests = None,
        split: Split = None,
        offset: Offset = 0,
        limit: Limit = None,
        skipped_file: SkippedFile = None,
        livecodebench: ToLivecodebench = None,
        evalplus: ToEvalplus = None,
    ) -> None:
        if find_spec("numpy") is None:
            stop(USAGE_ERROR, "evaluating is not installed here: pip install 'rkgrade[evaluate]'")
        if (server is None) == (completions is None):
            stop(USAGE_ERROR, "say where completions come from: --server URL or --completions FILE")
        if setting != "reasoning" and api != "chat":
            stop(USAGE_ERROR, f"--api: {setting} takes turns, which {api} has not: say chat")
        rows = sources.rows(paths, reader, preset, tests, split, offset, limit)
        options = _Options(
            out=out,
            url=sources.grader("--url", url),
            token=sources.token(token_file),
            server=server,
            model=model,
            key=_key(key_file) if server is not None else None,
            completions=completions,
            language=language,
            ks=ks or [],
            concurrency=concurrency,
            programs=programs,
            patience_s=patience_s,
            skipped=skipped_file,
            livecodebench=livecodebench,
            evalplus=evalplus,
        )
        grading = Grading(extraction=extraction, taxonomy=taxonomy, time_factor=time_factor, length_unit=length_unit)

        def sampling(model: str) -> Sampling:
            return Sampling(
                run=run or model,
                model=model,
                api=api,
                setting=setting,
                template=_template(template or _DEFAULTS.get(reader.name, "stdin")),
                chunk=chunk,
                temperature=temperature,
                top_p=top_p,
                max_tokens=max_tokens,
                stop=tuple(stop_at or ()),
                extra=_extra(extra),
                calls=calls,
            )

        _evaluate(rows, options, sampling, grading, samples if server is not None else None)

    return sources.fitted(command, reader)


#: Templates of sets whose problems are not mostly of stdin.
_DEFAULTS = dict.fromkeys(("livecodebench", "humaneval-plus", "mbpp-plus"), "livecodebench")

for _name, _reader in readers().items():
    if _reader.statement is not None:
        app.command(_name)(_command(_reader))


def _template(name: str) -> Template:
    """Raises BadTemplate."""
    if name in TEMPLATES:
        return template_of(name)
    try:
        return template_of(name, Path(name).read_text("utf-8"))
    except OSError as error:
        stop(USAGE_ERROR, f"--template: {name}: {error.strerror}; it is one of {', '.join(TEMPLATES)}, or a file")
    except UnicodeDecodeError:
        stop(USAGE_ERROR, f"--template: {name}: not UTF-8")


def _extra(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError as error:
        stop(USAGE_ERROR, f"--extra: not JSON: {error}")
    if not isinstance(fields, dict):
        stop(USAGE_ERROR, f"--extra: must be a JSON object, not {type(fields).__name__}")
    if taken := sorted(_OWN_FIELDS & fields.keys()):
        stop(USAGE_ERROR, f"--extra: {', '.join(taken)}: has an option of its own, or is not to be chosen")
    return fields


def _key(file: Path | None) -> str | None:
    try:
        return read_token(file, KEY_VARIABLE)
    except TokenError as error:
        stop(USAGE_ERROR, str(error))


def _evaluate(
    rows: Rows, options: _Options, sampling: Callable[[str], Sampling], grading: Grading, samples: int | None
) -> NoReturn:
    """Run an evaluation, say what it came to, and end the command with its status."""
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    kept = f"what was done is kept in {options.out}, and the same command goes on"
    try:
        with interruptible(f"ended; {kept}"), ExitStack() as stack:
            skips = stack.enter_context(Output(options.skipped)) if options.skipped is not None else None
            board = stack.enter_context(Board(console, skips))
            report = asyncio.run(_evaluated(rows, options, sampling, grading, samples, board))
    except (ServerError, ClientError) as error:
        stop(GRADER_ERROR, f"{error}; {kept}")
    except (DatasetError, EvaluationError, ValueError) as error:
        stop(USAGE_ERROR, str(error))
    evaluate_tables.tell(report)
    raise typer.Exit(SOME_SKIPPED if board.skips or report.faults else 0)


async def _evaluated(
    rows: Rows,
    options: _Options,
    sampling: Callable[[str], Sampling],
    grading: Grading,
    samples: int | None,
    board: Board,
) -> Report:
    """Raises DatasetError, EvaluationError, ClientError, and ValueError of pass@k that cannot be told."""
    from rl_client.async_client import AsyncGrader
    from rl_client.audit.choosing import language_names
    from rl_client.evaluate.completions import Completions, hash_of
    from rl_client.evaluate.exports import write_evalplus, write_livecodebench
    from rl_client.evaluate.grading import Judge
    from rl_client.evaluate.report import check_ks, report_of
    from rl_client.evaluate.run import Evaluation, Stage
    from rl_client.evaluate.server import ModelServer
    from rl_client.evaluate.stores import GENERATIONS, GRADES, Generations, Grades

    if samples is not None:
        check_ks(options.ks, samples)
    async with AsyncExitStack() as stack:
        grader = await stack.enter_async_context(
            AsyncGrader(
                options.url,
                token=options.token,
                # Tools do not wait until programs are graded.
                connections=options.programs + options.concurrency,
                patience_s=options.patience_s,
            )
        )
        await grader.check()
        ids = language_names(await grader.languages())
        language = ids.get(options.language.lower())
        if language is None:
            raise ValueError(
                f"--language: the grader has no {options.language!r}; it has {', '.join(sorted(set(ids.values())))}"
            )
        server = None
        if options.server is not None:
            server = await stack.enter_async_context(
                ModelServer(
                    options.server, key=options.key, connections=options.concurrency, patience_s=options.patience_s
                )
            )
            source: Sampling | Given = sampling(options.model or await _only_model(server))
        else:
            assert options.completions is not None
            source = Given(completions=hash_of(options.completions))
        manifest = Manifest(language=language, source=source, grading=grading, samples=samples)
        manifest.keep(options.out)
        judge = Judge(grader, language, {name for name, id in ids.items() if id == language}, grading)
        generations = stack.enter_context(Generations(options.out / GENERATIONS, judge.hash))
        grades = stack.enter_context(Grades(options.out / GRADES))
        evaluation = Evaluation(
            manifest, Stage(server, options.concurrency, grader, options.programs), judge, generations, grades, board
        )
        board.reading(rows.total_bytes)
        await evaluation.read(rows.candidates(statements=server is not None))
        if options.completions is not None:
            completions = Completions(options.completions, evaluation.tasks.values())
            evaluation.take(completions)
            board.others(completions.others)
            samples = min(
                filter(None, (len(list(evaluation.samples(task))) for task in evaluation.tasks.values())), default=0
            )
        ks = check_ks(options.ks, samples or 0)
        # What is sampled already needs no server to be graded.
        if isinstance(source, Sampling) and server is not None and evaluation.missing():
            await _check_model(server, source.model)
            if source.setting == "agentic":
                await grader.check_sessions()
        await evaluation.run()
        report = report_of(manifest, evaluation.results(), ks)
        with Output(options.out / REPORT) as output:
            output.write_line(report.model_dump_json(indent=2).encode())
        if options.livecodebench is not None:
            write_livecodebench(options.livecodebench, evaluation.programs())
        if options.evalplus is not None:
            write_evalplus(options.evalplus, evaluation.programs())
    return report


async def _only_model(server: ModelServer) -> str:
    """Raises ServerError, and ValueError where it has several, or does not say."""
    models = await server.models()
    if len(models) != 1:
        known = f"the server has {', '.join(models)}" if models else "the server does not say which it has"
        raise ValueError(f"--model: {known}: say which")
    return models[0]


async def _check_model(server: ModelServer, model: str) -> None:
    """Raises ServerError, and ValueError where it has others."""
    models = await server.models()
    if models and model not in models:
        raise ValueError(f"--model: the server has no {model!r}; it has {', '.join(models)}")
