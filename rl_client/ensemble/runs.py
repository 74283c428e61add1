"""The runs of a pool: evaluations of its checkpoints, read from their folders, and held to what makes them comparable.

A run is written `[NAME=]FOLDER[@ALPHA]`. Without them its name is the folder's, and its alpha is the one that `rkgrade
merge` names folders by (`alpha=1.5`).
"""

from __future__ import annotations

import filecmp
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from rl_client.ensemble.errors import BadRun, Unfit
from rl_client.evaluate.report import ProblemCounts, Report
from rl_client.evaluate.rows import Grade
from rl_client.evaluate.settings import MANIFEST, Given, Manifest, Sampling
from rl_client.evaluate.stores import GENERATIONS, GRADES
from rl_client.evaluate.whole import REPORT

#: What the checkpoints of a pool differ in, and what changes no answer.
_OF_THE_MODEL = {"run", "model", "chunk"}

_KINDS = {Sampling: "sampled", Given: "from a file"}

#: Examples of a reason that are told.
_TOLD = 3
#: Characters of a setting that are told.
_SHOWN = 60


Kind = TypeVar("Kind", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Named:
    """A run as it is written on the command line."""

    name: str
    folder: Path
    alpha: float | None

    @staticmethod
    def of(text: str) -> Named:
        """What is a folder's name as it stands is none with a name or an alpha. Raises BadRun."""
        rest, at, ending = text.rpartition("@")
        alpha = None
        if Path(text).is_dir() or not at:
            rest = text
        else:
            alpha = _alpha(ending)
            if alpha is None:
                raise BadRun(f"{text}: alpha must be a finite number, not {ending!r}")
        name, equals, folder = rest.partition("=")
        if Path(rest).is_dir() or not equals:
            name, folder = Path(rest).resolve().name, rest
        elif not name or not folder:
            raise BadRun(f"{text}: a run is [NAME=]FOLDER[@ALPHA]")
        path = Path(folder)
        if not path.is_dir():
            raise BadRun(f"{text}: {folder} is no folder")
        if alpha is None:
            _, said, written = path.resolve().name.rpartition("alpha=")
            # A folder that is called 3 says no alpha.
            alpha = _alpha(written) if said else None
        return Named(name, path, alpha)


@dataclass(frozen=True, slots=True)
class Run:
    """One checkpoint's evaluation."""

    named: Named
    manifest: Manifest
    problems: dict[tuple[str, str], ProblemCounts]
    """By key and id."""

    @property
    def is_extrapolated(self) -> bool:
        """Whether its weights are past those of a checkpoint that was trained."""
        return self.named.alpha is not None and not 0 <= self.named.alpha <= 1

    def grades(self) -> Iterator[Grade]:
        """All gradings that are kept, in no order; a last line that is half written is none. Raises BadRun."""
        path = self.named.folder / GRADES
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    if line.endswith(b"\n"):
                        try:
                            yield Grade.model_validate_json(line)
                        except ValidationError:
                            raise BadRun(f"{path}: line {number} is none of an evaluation's grades") from None
        except OSError as error:
            raise BadRun(f"{path}: {error.strerror}") from error


def read_runs(texts: Sequence[str]) -> list[Run]:
    """Raises BadRun, and Unfit with all that keeps them from being pooled."""
    named = [Named.of(text) for text in texts]
    if len(named) < 2:
        raise BadRun("a pool has two runs at least")
    for what, counts in (
        ("the name {} is given twice: say NAME=FOLDER", Counter(one.name for one in named)),
        ("{} is given twice", Counter(str(one.folder.resolve()) for one in named)),
    ):
        for value, count in counts.items():
            if count > 1:
                raise BadRun(what.format(value))
    reasons: list[str] = []
    runs = []
    for one in named:
        run = _read(one, reasons)
        if run is not None:
            runs.append(run)
    for other in runs[1:]:
        reasons += _differences(runs[0], other)
    for left, right in itertools.combinations(runs, 2):
        if _are_copies(left.named.folder / GENERATIONS, right.named.folder / GENERATIONS):
            reasons.append(f"{left.named.name} and {right.named.name} hold the same samples, which count but once")
    if reasons:
        raise Unfit(reasons)
    return runs


def with_equal_seeds(runs: Sequence[Run]) -> list[tuple[str, list[Run]]]:
    """Runs of which several were sampled with the same seeds, which are made from problems and `--run` alone, by that.

    Without a temperature no seed changes anything.
    """
    found: dict[str, list[Run]] = {}
    for run in runs:
        source = run.manifest.source
        if isinstance(source, Sampling) and source.temperature > 0:
            found.setdefault(source.run, []).append(run)
    return [(name, several) for name, several in found.items() if len(several) > 1]


def _read(named: Named, reasons: list[str]) -> Run | None:
    """None where an evaluation has not come to its report; adds to `reasons` why it is not whole."""
    manifest = _model(named.folder / MANIFEST, Manifest, "manifest")
    if manifest is None:
        raise BadRun(f"{named.folder}: holds no evaluation: {MANIFEST} is not there")
    report = _model(named.folder / REPORT, Report, "report")
    if report is None:
        reasons.append(f"{named.name}: is not graded to its end: {REPORT} is not there; begin the evaluation again")
        return None
    was, now = (one.model_dump(mode="json", exclude={"rkgrade"}) for one in (report.manifest, manifest))
    if was != now:
        told = ", ".join(_compared(_flat(was), _flat(now), "the report", "the manifest"))
        reasons.append(f"{named.name}: was begun again, and is not graded to its end: {told}")
    problems = {(one.key, one.problem_id): one for one in report.problems}
    wanted = report.manifest.samples or 1
    for what, bad in (
        ("samples at which the grader failed", [one for one in report.problems if one.faults]),
        (
            f"fewer than {wanted} samples" if report.manifest.samples else "no samples",
            [one for one in report.problems if one.samples < wanted],
        ),
    ):
        if bad:
            reasons.append(f"{named.name}: {_problems(len(bad))} with {what}: {_some(one.key for one in bad)}")
    return Run(named, manifest, problems)


def _model(path: Path, kind: type[Kind], words: str) -> Kind | None:
    """None where it is not there. Raises BadRun."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadRun(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(map(str, fault["loc"]))
        raise BadRun(f"{path}: is no {words} of an evaluation: {field and f'{field}: '}{fault['msg']}") from None


def _differences(first: Run, other: Run) -> Iterator[str]:
    """All that keeps two runs from being compared."""
    a, b = first.named.name, other.named.name
    apart = [
        {key for key, _ in has.problems.keys() - lacks.problems.keys()}
        for has, lacks in ((first, other), (other, first))
    ]
    if changed := apart[0] & apart[1]:
        yield f"{b}: {_problems(len(changed))} with other tests or limits than in {a}: {_some(changed)}"
    for has, missing, lacks in ((a, apart[0] - changed, b), (b, apart[1] - changed, a)):
        if missing:
            yield f"{lacks}: lacks {_problems(len(missing))} of {has}: {_some(missing)}"
    one, two = first.manifest.source, other.manifest.source
    asked: tuple[dict[str, object], dict[str, object]] = ({}, {})
    match one, two:
        case Sampling(), Sampling():
            asked = (
                one.model_dump(mode="json", exclude=_OF_THE_MODEL),
                two.model_dump(mode="json", exclude=_OF_THE_MODEL),
            )
        case Given(), Given():
            if one == two:
                yield f"{a} and {b} are of the same completions"
        case _:
            yield f"completions: {_KINDS[type(one)]} in {a}, {_KINDS[type(two)]} in {b}"
    here, there = (
        source | {"language": run.manifest.language, "grading": run.manifest.grading.model_dump(mode="json")}
        for source, run in zip(asked, (first, other), strict=True)
    )
    yield from _compared(_flat(here), _flat(there), a, b)


def _are_copies(one: Path, other: Path) -> bool:
    """Whether both have the same samples: no two samplings take the same time. Raises BadRun."""
    try:
        return filecmp.cmp(one, other, shallow=False)
    except OSError as error:
        raise BadRun(f"{error.filename}: {error.strerror}") from error


def _flat(value: dict[str, object], above: str = "") -> dict[str, object]:
    """By the path of each leaf."""
    pairs = (
        _flat(one, f"{above}{name}.").items() if isinstance(one, dict) else [(f"{above}{name}", one)]
        for name, one in value.items()
    )
    return dict(itertools.chain.from_iterable(pairs))


def _compared(one: dict[str, object], other: dict[str, object], a: str, b: str) -> Iterator[str]:
    for name in dict.fromkeys((*one, *other)):
        if name not in one or name not in other or one[name] != other[name]:
            texts = [_text(part[name]) if name in part else "not there" for part in (one, other)]
            # Long texts are shown from shortly before where they part.
            same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
            start = max(0, same - _SHOWN // 2) if max(map(len, texts)) > _SHOWN else 0
            here, there = (_shown(text, start) for text in texts)
            yield f"{name}: {here} in {a}, {there} in {b}"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shown(text: str, start: int) -> str:
    ends = "..." if len(text) > start + _SHOWN else ""
    return f"{'...' if start else ''}{text[start : start + _SHOWN]}{ends}"


def _some(keys: Iterable[str]) -> str:
    names = sorted(keys)
    more = len(names) - _TOLD
    return ", ".join(names[:_TOLD]) + (f" and {more:,} more" if more > 0 else "")


def _problems(count: int) -> str:
    return f"{count:,} problem" + ("" if count == 1 else "s")


def _alpha(text: str) -> float | None:
    try:
        alpha = float(text)
    except ValueError:
        return None
    # -0 is 0, in tables as elsewhere.
    return alpha + 0.0 if math.isfinite(alpha) else None
