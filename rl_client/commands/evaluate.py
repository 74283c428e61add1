"""`rkgrade evaluate`: a model's answers to the problems of a data set, sampled and graded. One command for each set
whose rows say what a model is to do. Needs the extra `evaluate`.

What computes is imported when it is called for, so that no other command waits for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from rich.console import Console

from rl_client.commands import evaluate_tables, running, sources
from rl_client.commands.ending import GRADER_ERROR, SOME_SKIPPED, USAGE_ERROR, interruptible, stop
from rl_client.commands.evaluate_board import Board
from rl_client.commands.sources import Files, Limit, Offset, PresetOption, Rows, Split, Tests, TokenFile
from rl_client.datasets.base import DatasetError, Reader, readers
from rl_client.datasets.outputs import Output
from rl_client.errors import ClientError, TokenError
from rl_client.evaluate.errors import BadTemplate, EvaluationError, ServerError
from rl_client.evaluate.prompts import TEMPLATES, Template, template_of
from rl_client.evaluate.settings import Api, Grading, Sampling, Setting
from rl_client.extras import install
from rl_client.patience import PATIENCE_S
from rl_client.token import read_token
from service.contract import Extraction, LengthUnit, Taxonomy, mistakes

if TYPE_CHECKING:
    from rl_client.evaluate.whole import Wanted

app = typer.Typer(no_args_is_help=True)

KEY_VARIABLE = "OPENAI_API_KEY"

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
Thinking = Annotated[
    bool, typer.Option("--thinking", help="Prompts end in <think>: an answer has no program before </think>.")
]
TaxonomyOption = Annotated[Taxonomy, typer.Option("--taxonomy", help="The rule that names how a program failed.")]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Run each program, also where the grader knows what it came to before.")
]
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


@app.callback()
def evaluate() -> None:
    """Sample a model on a data set's problems, and grade it. Tells how often it is right, how it fails, and pass@k."""


Then = Callable[[Rows, "Wanted", Path | None], None]
"""Told of the rows, of what is wanted of them, and of where skipped rows are to be written."""


def command_of(reader: Reader, then: Then) -> Callable[..., None]:
    """The command of a set, which holds its options to each other, and leaves to `then` what becomes of them."""

    def command(
        ctx: typer.Context,
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
        thinking: Thinking = False,
        taxonomy: TaxonomyOption = "first_failure",
        time_factor: TimeFactor = 1.0,
        length_unit: Unit = "bytes",
        fresh: Fresh = False,
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
            stop(USAGE_ERROR, f"evaluating is not installed here: {install('evaluate')}")
        if (server is None) == (completions is None):
            stop(USAGE_ERROR, "say where completions come from: --server URL or --completions FILE")
        if setting != "reasoning" and api != "chat":
            stop(USAGE_ERROR, f"--api: {setting} takes turns, which {api} has not: say chat")
        if completions is not None:
            _refuse_sampling(ctx)
        from rl_client.evaluate.whole import Server, Wanted

        rows = sources.rows(paths, reader, preset, tests, split, offset, limit)
        filled, fields = _template(template or _DEFAULTS.get(reader.name, "stdin")), _extra(extra)

        def sampling(model: str) -> Sampling:
            return Sampling(
                run=run or model,
                model=model,
                api=api,
                setting=setting,
                template=filled,
                chunk=chunk,
                temperature=temperature,
                top_p=top_p,
                max_tokens=max_tokens,
                stop=tuple(stop_at or ()),
                extra=fields,
                calls=calls,
            )

        try:
            grading = Grading(
                extraction=extraction,
                thinking=thinking,
                taxonomy=taxonomy,
                time_factor=time_factor,
                length_unit=length_unit,
            )
            sampling(model or "")
        except ValidationError as error:
            field, words = mistakes(error)[0]
            stop(USAGE_ERROR, f"--{field.replace('_', '-')}: {words}")
        source: Server | Path
        if server is not None:
            source = Server(sources.grader("--server", server), _key(key_file), model, sampling, samples)
        else:
            assert completions is not None
            source = completions
        wanted = Wanted(
            folder=out,
            grader_url=sources.grader("--url", url),
            grader_token=sources.token(token_file),
            source=source,
            language=language,
            grading=grading,
            ks=tuple(ks or ()),
            requests=concurrency,
            programs=programs,
            patience_s=patience_s,
            fresh=fresh,
            livecodebench=livecodebench,
            evalplus=evalplus,
        )
        then(rows, wanted, skipped_file)

    return sources.fitted(command, reader)


#: Templates of sets whose problems are not mostly of stdin.
_DEFAULTS = dict.fromkeys(("livecodebench", "humaneval-plus", "mbpp-plus"), "livecodebench")

#: Parameters that mean nothing where completions are there.
_OF_SAMPLING = frozenset(
    "model key_file run api setting template samples chunk temperature top_p max_tokens stop_at extra calls "
    "concurrency".split()
)


def _template(name: str) -> Template:
    """Ends the command where there is none, or it is none."""
    if name in TEMPLATES:
        return template_of(name)
    try:
        return template_of(name, Path(name).read_text("utf-8"))
    except BadTemplate as error:
        stop(USAGE_ERROR, str(error))
    except OSError as error:
        stop(USAGE_ERROR, f"--template: {name}: {error.strerror}; it is one of {', '.join(TEMPLATES)}, or a file")
    except UnicodeDecodeError:
        stop(USAGE_ERROR, f"--template: {name}: not UTF-8")


def _extra(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
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


def _refuse_sampling(ctx: typer.Context) -> None:
    """Ends the command where an option says how to sample, and nothing is sampled."""
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if parameter.name in _OF_SAMPLING and source is not None and source.name == "COMMANDLINE":
            stop(USAGE_ERROR, f"{parameter.opts[0]}: is for --server: completions of a file are there already")


def _evaluate(rows: Rows, wanted: Wanted, skipped: Path | None) -> NoReturn:
    """Run an evaluation, say what it came to, and end the command with its status."""
    from rl_client.evaluate.whole import evaluate

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    kept = f"what was done is kept in {wanted.folder}, and the same command goes on"
    try:
        with interruptible(f"ended; {kept}"), ExitStack() as stack:
            skips = stack.enter_context(Output(skipped)) if skipped is not None else None
            board = stack.enter_context(Board(console, skips, rows.total_bytes))
            candidates = stack.enter_context(closing(rows.candidates(statements=not isinstance(wanted.source, Path))))
            report = running.run(evaluate(wanted, candidates, board))
    except (ServerError, ClientError) as error:
        stop(GRADER_ERROR, f"{error}; {kept}")
    except (DatasetError, EvaluationError) as error:
        stop(USAGE_ERROR, str(error))
    evaluate_tables.tell(report)
    raise typer.Exit(SOME_SKIPPED if board.skips or report.faults else 0)


for _name, _reader in readers().items():
    if _reader.statement is not None:
        app.command(_name)(command_of(_reader, _evaluate))
