"""The example submissions of a Kattis package, and what their folders and `submissions.yaml` say of them.

Source: https://www.kattis.com/problem-package-format/spec/2025-09 (Example submissions) and .../spec/legacy. A folder
stands for the verdicts that its programs may, and must somewhere, come to; `submissions.yaml` can say so of any folder,
program or group of tests. What there allows a program both to pass and to fail is no label: it is not graded.

The format knows four verdicts. Memory and output limits are run time errors in it; since judges differ over outputs
that are too long, they may pass for a wrong answer as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rl_client.datasets.base import DatasetError, read_text
from rl_client.datasets.kattis import LEGACY, format_version, read_yaml
from rl_client.datasets.submissions import Expectation, Submission
from service.contract import Verdict

_VERDICTS = {
    "AC": frozenset({Verdict.ACCEPTED}),
    "WA": frozenset({Verdict.WRONG_ANSWER, Verdict.OUTPUT_LIMIT}),
    "TLE": frozenset({Verdict.TIME_LIMIT, Verdict.IDLE}),
    "RTE": frozenset({Verdict.RUNTIME_ERROR, Verdict.MEMORY_LIMIT, Verdict.OUTPUT_LIMIT}),
}
_ALL = tuple(_VERDICTS)


@dataclass(frozen=True, slots=True)
class _Rule:
    permitted: tuple[str, ...] = _ALL
    required: tuple[str, ...] = _ALL

    def expectation(self, tests: re.Pattern[str] | None = None) -> Expectation:
        permitted = frozenset[Verdict]().union(*(_VERDICTS[name] for name in self.permitted))
        return Expectation(permitted, frozenset[Verdict]().union(*(_VERDICTS[name] for name in self.required)), tests)


_FOLDERS = {
    "accepted": _Rule(permitted=("AC",)),
    "rejected": _Rule(required=("RTE", "TLE", "WA")),
    "wrong_answer": _Rule(permitted=("AC", "WA"), required=("WA",)),
    "time_limit_exceeded": _Rule(permitted=("AC", "TLE"), required=("TLE",)),
    "run_time_error": _Rule(permitted=("AC", "RTE"), required=("RTE",)),
    "brute_force": _Rule(permitted=("AC", "RTE", "TLE"), required=("RTE", "TLE")),
}

#: `partially_accepted` must not have all points, so some test must fail, or its validator not give all of its score.
_LEGACY_FOLDERS = _FOLDERS | {
    "partially_accepted": _Rule(required=("RTE", "TLE", "WA")),
    "time_limit_exceeded": _Rule(permitted=("AC", "WA", "TLE"), required=("TLE",)),
    "run_time_error": _Rule(required=("RTE",)),
}

#: The format's own table of file endings. That of a language without an ending of its own needs a `language`.
_ENDINGS = {
    ".c": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".c++": "cpp",
    ".C": "cpp",
    ".cs": "csharp",
    ".d": "d",
    ".f90": "fortran",
    ".go": "go",
    ".hs": "haskell",
    ".java": "java",
    ".js": "javascript",
    ".kt": "kotlin",
    ".lua": "lua",
    ".ml": "ocaml",
    ".nim": "nim",
    ".pas": "pascal",
    ".php": "php",
    ".pl": "prolog",
    ".pm": "perl",
    ".py": "python3",
    ".py2": "python2",
    ".py3": "python3",
    ".rb": "ruby",
    ".rs": "rust",
    ".scala": "scala",
    ".sh": "bash",
    ".swift": "swift",
    ".ts": "typescript",
}

#: Its codes that are a language of another name, as far as the grader is concerned.
_ALSO = {"python3numpy": "python3"}

_REQUIREMENTS = ("permitted", "required")

#: What a glob may say that is about no group of tests.
_SETTINGS = frozenset({*_REQUIREMENTS, "authors"})


def read_submissions(directory: Path) -> Iterator[Submission]:
    """The programs below `submissions/` of a package, in the order of their names.

    Raises DatasetError for a `submissions.yaml` that is malformed.
    """
    folder = directory / "submissions"
    if not folder.is_dir():
        return
    rules = _Rules(folder, _LEGACY_FOLDERS if format_version(directory) in LEGACY else _FOLDERS)
    root = directory.resolve()
    for kind in sorted(folder.iterdir()):
        if kind.is_dir() and not kind.name.startswith((".", "-")):
            for program in sorted(kind.iterdir()):
                if not program.name.startswith((".", "-")):
                    yield _submission(program, root, rules)


@dataclass(frozen=True, slots=True)
class _Glob:
    """What `submissions.yaml` says of the programs that a glob matches."""

    programs: re.Pattern[str]
    language: str | None
    expected: tuple[Expectation, ...]


class _Rules:
    """What folders and `submissions.yaml` say of the programs of one package. Raises DatasetError."""

    def __init__(self, folder: Path, usual: Mapping[str, _Rule]) -> None:
        self._path = folder / "submissions.yaml"
        self._folders = dict(usual)
        self._globs: list[_Glob] = []
        for key, settings in (read_yaml(self._path) if self._path.is_file() else {}).items():
            glob = str(key)
            if settings is None:
                continue
            if not isinstance(settings, dict):
                raise DatasetError(self._path, f"{glob}: must hold a map of settings")
            if glob in usual:
                # A folder by its own name: what is said replaces what is usual, and adds nothing to it.
                self._folders[glob] = self._rule(glob, settings, usual[glob])
                settings = {name: value for name, value in settings.items() if name not in _REQUIREMENTS}
            self._globs.append(self._glob(glob, settings))

    def of(self, name: str) -> tuple[tuple[Expectation, ...], str | None]:
        """All that is expected of the program `folder/name`, and the language that is set for it."""
        usual = self._folders.get(name.partition("/")[0])
        said = [one for one in self._globs if one.programs.fullmatch(name)]
        expected = () if usual is None else (usual.expectation(),)
        languages = [one.language for one in said if one.language is not None]
        return expected + tuple(each for one in said for each in one.expected), languages[-1] if languages else None

    def _glob(self, glob: str, settings: Mapping[str, Any]) -> _Glob:
        expected = []
        if any(name in settings for name in _REQUIREMENTS):
            expected.append(self._rule(glob, settings).expectation())
        for key, inner in settings.items():
            # Any other map is about a group of tests, or a test, that its key names.
            if key not in _SETTINGS and isinstance(inner, dict):
                expected.append(self._rule(f"{glob}: {key}", inner).expectation(_pattern(str(key))))
        language = settings.get("language")
        return _Glob(_pattern(glob), None if language is None else str(language), tuple(expected))

    def _rule(self, place: str, settings: Mapping[str, Any], usual: _Rule | None = None) -> _Rule:
        given: dict[str, tuple[str, ...]] = {}
        for name in _REQUIREMENTS:
            value = settings.get(name)
            if value is None:
                continue
            verdicts = [value] if isinstance(value, str) else value
            if not isinstance(verdicts, list) or not verdicts or not all(one in _ALL for one in verdicts):
                raise DatasetError(self._path, f"{place}: {name} must be a list of {', '.join(_ALL)}")
            given[name] = tuple(verdicts)
        return replace(usual or _Rule(), **given)


def _submission(program: Path, root: Path, rules: _Rules) -> Submission:
    label = program.parent.name
    name = f"{label}/{program.name}"
    expected, language = rules.of(name)
    accepted = frozenset({Verdict.ACCEPTED})
    must_fail = any(Verdict.ACCEPTED not in one.required or Verdict.ACCEPTED not in one.permitted for one in expected)
    correct = not must_fail and any(one.permitted == accepted and one.tests is None for one in expected)
    found = Submission(name, label, correct, language or "", "", expected)
    if not correct and not must_fail:
        return replace(found, unusable="no label says whether it passes")
    if not program.resolve().is_relative_to(root):
        return replace(found, unusable="links to a file outside the package")
    files = [program] if program.is_file() else sorted(one for one in program.rglob("*") if one.is_file())
    sources = [one for one in files if not one.name.startswith(".")]
    if len(sources) != 1:
        return replace(found, unusable="no source" if not sources else "several files")
    (source,) = sources
    language = language or _ENDINGS.get(source.suffix, source.suffix)
    found = replace(found, language=_ALSO.get(language, language))
    if not source.resolve().is_relative_to(root):
        return replace(found, unusable="links to a file outside the package")
    try:
        text = read_text(source)
    except DatasetError:
        return replace(found, unusable="not UTF-8")
    return replace(found, source=text, unusable="" if text.strip() else "no source")


def _pattern(glob: str) -> re.Pattern[str]:
    """What a glob of the format matches, or anything below it: `*` within one name, and `{a,b}`; no more."""
    parts: Sequence[str] = re.split(r"([*{},])", glob)
    depth, pattern = 0, ""
    for part in parts:
        if part == "*":
            pattern += "[^/]*"
        elif part == "{":
            depth, pattern = depth + 1, pattern + "(?:"
        elif part == "}" and depth:
            depth, pattern = depth - 1, pattern + ")"
        elif part == "," and depth:
            pattern += "|"
        else:
            pattern += re.escape(part)
    return re.compile(pattern + ")" * depth + "(?:/.*)?", re.DOTALL)
