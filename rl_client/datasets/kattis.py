"""Reads one problem in the Kattis problem package format: `legacy`, `2023-07-draft` and `2025-09`.

Source of the format: https://www.kattis.com/problem-package-format/spec/legacy and .../spec/2025-09.

What is read: `problem.yaml` (type, validation, limits), `.timelimit`, the output validator with its arguments, and all
`.in` with their `.ans` below `data/sample` and `data/secret`. Time limit: `limits.time_limit`, else `.timelimit`, else
2 s; memory limit: `limits.memory`, else 256 MiB (Kattis itself would give 2048); of scoring problems, what tests and
their folders are worth (`rl_client.datasets.kattis_points`). Whatever else would change what a program is given, or how
its output is judged, is refused rather than left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from rl_client.datasets import kattis_points
from rl_client.datasets.base import DatasetError, build, read_text
from rl_client.datasets.kattis_programs import PackageProgram, read_program
from service.contract import Checker, ExactChecker, Problem, ProblemLimits, TokensChecker, first_mistake

_DEFAULT_TIME_S = 2.0

LEGACY = frozenset({"legacy", "legacy-icpc"})
_INTERACTIVE = "interactive"
_MULTI_PASS = "multi-pass"
_SCORING = "scoring"

#: Of a problem of several passes that does not say.
_DEFAULT_PASSES = 2

#: Settings of a folder of tests: `testdata.yaml` up to the draft of 2023-07, `test_group.yaml` since.
_GROUP_FILES = ("testdata.yaml", "test_group.yaml")
_VALIDATOR_KEYS = ("output_validator_args", "output_validator_flags")


def read_package(directory: Path) -> Problem:
    """Read the package in `directory`.

    Tests bear the names the format gives them, such as `secret/03`: samples first, each part in lexicographic
    order. Raises DatasetError, which names the file at fault, for a package that is damaged or not supported.
    """
    if not directory.is_dir():
        raise DatasetError(directory, "no such directory")
    config_path = directory / "problem.yaml"
    if not config_path.is_file():
        raise DatasetError(config_path, "missing, so this is no Kattis problem package")
    config = read_yaml(config_path)
    types = _types(config_path, config)
    _refuse_unsupported(directory)
    validator = _validator(directory, config, types)

    cases = _read_cases(directory)
    flags = _arguments(config_path, config.get("validator_flags")) + cases[0].arguments
    for case in cases:
        if case.arguments != cases[0].arguments:
            reason = "validator arguments that differ from test to test are not supported"
            raise DatasetError(case.arguments_path, reason)
    judging = _judging(config_path if not cases[0].arguments else cases[0].arguments_path, validator, flags, types)
    tests: list[dict[str, Any]] = [{"input": case.input, "output": case.answer, "name": case.name} for case in cases]
    if _SCORING in types:
        judging |= _with_points(directory, config, validator, judging, tests)
    try:
        return build(
            tests=tests,
            limits=_limits(directory, config_path, config),
            **judging,
            **_passes(config_path, config, types),
        )
    except ValidationError as error:
        raise DatasetError(directory, first_mistake(error)) from error


@dataclass(frozen=True, slots=True)
class _Settings:
    """What holds for a test, from the nearest file above it that says so."""

    arguments: tuple[str, ...]
    """Arguments of the output validator."""
    path: Path
    """The file they come from."""

    def refined_by(self, path: Path) -> _Settings:
        """These settings, with those of the file put over them, if there is such a file."""
        if not path.is_file():
            return self
        content = read_yaml(path)
        if content.get("args"):
            raise DatasetError(path, "command-line arguments for programs (args) are not supported")
        for key in _VALIDATOR_KEYS:
            if key in content:
                return _Settings(_arguments(path, content[key]), path)
        return self


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    input: str
    answer: str
    arguments: tuple[str, ...]
    arguments_path: Path


def _read_cases(directory: Path) -> list[_Case]:
    root, data = directory.resolve(), directory / "data"
    settings = _Settings((), directory / "problem.yaml")
    for file in _GROUP_FILES:
        settings = settings.refined_by(data / file)
    samples = list(_read_folder(root, data, data / "sample", settings))
    secret = list(_read_folder(root, data, data / "secret", settings))
    if not secret:
        raise DatasetError(data / "secret", "holds no test (.in)")
    return samples + secret


def _read_folder(root: Path, data: Path, folder: Path, settings: _Settings) -> Iterator[_Case]:
    if not folder.is_dir():
        return
    for file in _GROUP_FILES:
        settings = settings.refined_by(folder / file)
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if path.suffix == ".files":
                raise DatasetError(path, "input files beside stdin are not supported")
            if path.is_symlink():
                raise DatasetError(path, "a link to a folder may lead in circles and is not followed")
            yield from _read_folder(root, data, path, settings)
        elif path.suffix == ".ans" and not path.with_suffix(".in").is_file():
            raise DatasetError(path, f"has no input {path.stem}.in beside it")
        elif path.suffix == ".in":
            yield _read_case(root, data, path, settings.refined_by(path.with_suffix(".yaml")))


def _read_case(root: Path, data: Path, path: Path, settings: _Settings) -> _Case:
    answer_path = path.with_suffix(".ans")
    if not answer_path.is_file():
        raise DatasetError(path, f"has no answer {answer_path.name} beside it")
    for file in (path, answer_path):
        if not file.resolve().is_relative_to(root):
            raise DatasetError(file, "links to a file outside the package")
    return _Case(
        name=path.relative_to(data).with_suffix("").as_posix(),
        input=read_text(path),
        answer=read_text(answer_path),
        arguments=settings.arguments,
        arguments_path=settings.path,
    )


def format_version(directory: Path) -> str:
    """The version of the format that a package is in. Raises DatasetError."""
    return _version(read_yaml(directory / "problem.yaml"))


def _version(config: dict[str, Any]) -> str:
    return str(config.get("problem_format_version") or "legacy")


def read_yaml(path: Path) -> dict[str, Any]:
    """The map in a file of a package; an empty file is an empty one. Raises DatasetError."""
    try:
        content = yaml.safe_load(read_text(path))
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f" in line {error.problem_mark.line + 1}"
        raise DatasetError(path, f"not YAML: {error.problem}{line}") from error
    except yaml.YAMLError as error:
        raise DatasetError(path, f"not YAML: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise DatasetError(path, "must hold a map of settings")
    return content


def _types(config_path: Path, config: dict[str, Any]) -> frozenset[str]:
    """What of `interactive`, `multi-pass` and `scoring` the problem is."""
    kind = config.get("type") or "pass-fail"
    types = set(map(str, kind)) if isinstance(kind, list) else set(str(kind).split())
    if "submit-answer" in types:
        raise DatasetError(config_path, "submit-answer problems are not supported: nothing is run in them")
    # Of the legacy format, and of DOMjudge's packages: `validation: custom multi-pass`.
    types.update({_INTERACTIVE, _MULTI_PASS}.intersection(str(config.get("validation") or "").split()))
    return frozenset(types & {_INTERACTIVE, _MULTI_PASS, _SCORING})


def _with_points(
    directory: Path,
    config: dict[str, Any],
    validator: PackageProgram | None,
    judging: dict[str, Any],
    tests: list[dict[str, Any]],
) -> dict[str, Any]:
    """The problem's groups, and its checker or interactor with what a full score is; tests get their points."""
    version = _version(config)
    legacy = version in LEGACY
    if not legacy and version != "2025-09":
        raise DatasetError(directory / "problem.yaml", f"scores of the format {version} are not supported")
    scores = validator is not None and (
        "score" in str(config.get("validation") or "").split() if legacy else validator.mentions("score.txt")
    )
    names = [test["name"] for test in tests]
    given = kattis_points.points(directory / "data", names, read_yaml, legacy=legacy, scores=scores)
    for index, (points, group) in given.tests.items():
        tests[index] |= {"points": points, "group": group}
    judged_by = "interactor" if judging["kind"] == _INTERACTIVE else "checker"
    full_score = {} if given.full_score is None else {judged_by: judging[judged_by] | {"full_score": given.full_score}}
    return {"groups": given.groups, **full_score}


def _refuse_unsupported(directory: Path) -> None:
    parts = {
        "include": "code added to every program is not supported",
        "static_validator": "static validators are not supported",
    }
    for name, reason in parts.items():
        if _holds_something(directory / name):
            raise DatasetError(directory / name, reason)


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _validator(directory: Path, config: dict[str, Any], types: frozenset[str]) -> PackageProgram | None:
    """The package's own output validator; None where the default one judges."""
    root, one, several = directory.resolve(), directory / "output_validator", directory / "output_validators"
    if _version(config) in LEGACY:
        validation = str(config.get("validation") or "default").split()
        if validation[:1] == ["default"]:
            return None
        if validation[:1] != ["custom"]:
            raise DatasetError(directory / "problem.yaml", f"unknown validation {' '.join(validation)!r}")
    elif _holds_something(one):
        # There is no `validation` any more: a validator that is there is used, and its folder is one program.
        return read_program(one, root)
    elif not _holds_something(several):
        if types - {_SCORING}:
            raise DatasetError(one, "missing, though the problem's type needs a validator of its own")
        return None
    programs = sorted(path for path in several.iterdir() if path.name[:1] != ".") if several.is_dir() else []
    if len(programs) != 1:
        raise DatasetError(several, f"holds {len(programs)} programs; exactly one is supported")
    return read_program(programs[0], root)


def _judging(
    path: Path, validator: PackageProgram | None, flags: tuple[str, ...], types: frozenset[str]
) -> dict[str, Any]:
    """`kind`, and the checker or interactor."""
    if validator is None:
        if types := types - {_SCORING}:
            raise DatasetError(path, f"{' and '.join(sorted(types))}, but without a validator of its own")
        return {"kind": "stdio", "checker": _checker(path, flags)}
    program = {"type": "kattis", **validator.fields(), "flags": flags}
    if _INTERACTIVE in types:
        return {"kind": "interactive", "interactor": program}
    return {"kind": "stdio", "checker": program}


def _passes(config_path: Path, config: dict[str, Any], types: frozenset[str]) -> dict[str, Any]:
    if _MULTI_PASS not in types:
        return {}
    limits = config.get("limits") or {}
    if not isinstance(limits, dict):
        raise DatasetError(config_path, "limits must be a map")
    return {"passes": limits.get("validation_passes") or _DEFAULT_PASSES}


def _arguments(path: Path, value: Any) -> tuple[str, ...]:
    """Validator arguments: one string up to the draft of 2023-07, a list since."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(value.split())
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    raise DatasetError(path, "validator arguments must be a string or a list")


def _checker(path: Path, flags: tuple[str, ...]) -> Checker:
    """The checker that does what Kattis' default output validator does with these flags."""
    case_sensitive = space_sensitive = False
    absolute: float | None = None
    relative: float | None = None
    rest = iter(flags)
    for flag in rest:
        match flag:
            case "case_sensitive":
                case_sensitive = True
            case "space_change_sensitive":
                space_sensitive = True
            case "float_tolerance":
                absolute = relative = _tolerance(path, flag, next(rest, ""))
            case "float_absolute_tolerance":
                absolute = _tolerance(path, flag, next(rest, ""))
            case "float_relative_tolerance":
                relative = _tolerance(path, flag, next(rest, ""))
            case _:
                raise DatasetError(path, f"unknown validator flag {flag!r}")
    if not space_sensitive:
        return TokensChecker(
            type="tokens", case_sensitive=case_sensitive, float_absolute=absolute, float_relative=relative
        )
    if case_sensitive and absolute is None and relative is None:
        return ExactChecker(type="exact")
    raise DatasetError(path, "space_change_sensitive is supported only with case_sensitive and no tolerance")


def _tolerance(path: Path, flag: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise DatasetError(path, f"{flag} needs a number, not {text!r}")
    return value


def _limits(directory: Path, config_path: Path, config: dict[str, Any]) -> ProblemLimits:
    limits = config.get("limits") or {}
    if not isinstance(limits, dict):
        raise DatasetError(config_path, "limits must be a map")
    time_path, time_s = config_path, limits.get("time_limit")
    if time_s is None and (directory / ".timelimit").is_file():
        time_path = directory / ".timelimit"
        text = read_text(time_path).strip()
        try:
            time_s = float(text)
        except ValueError:
            raise DatasetError(time_path, f"must hold a number of seconds, not {text[:40]!r}") from None
    fields = {"cpu_s": _DEFAULT_TIME_S if time_s is None else time_s}
    for key, field in (("memory", "memory_mb"), ("output", "output_mb")):
        if limits.get(key) is not None:
            fields[field] = limits[key]
    try:
        return ProblemLimits.model_validate(fields)
    except ValidationError as error:
        at_fault = time_path if error.errors()[0]["loc"] == ("cpu_s",) else config_path
        raise DatasetError(at_fault, first_mistake(error)) from error
