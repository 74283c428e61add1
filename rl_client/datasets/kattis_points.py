"""What the tests of a Kattis scoring problem are worth, and how groups of them add up.

The format computes a score up a tree of folders; one that is rejected costs all of its score. A problem here has only
one layer of groups (`service.points`). So what a folder comes to is reduced, from the tests upwards, to one of two
things: all or nothing (`Whole`), where a test that fails costs all of it; or parts that count side by side (`Parts`).
What is neither is refused, with the file at fault.

Sources: https://www.kattis.com/problem-package-format/spec/legacy ("Test Data Groups", "Default Grader Specification")
and .../spec/2025-09 ("Result aggregation"). Of a folder that is not accepted, the legacy score is ignored, which is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rl_client.datasets.base import DatasetError

#: Flags of the legacy default grader.
_VERDICTS = frozenset({"worst_error", "first_error", "always_accept"})
_SCORES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "avg": lambda scores: math.fsum(scores) / len(scores),
    "min": min,
    "max": max,
}
_FLAGS = frozenset({"ignore_sample", "accept_if_any_accepted"})

_SAMPLE, _SECRET = "sample", "secret"

ReadYaml = Callable[[Path], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Points:
    """What a problem gives, in the terms of the wire contract."""

    tests: Mapping[int, tuple[float, str]]
    """Points and group of a test, by its index; tests that are not in it give none."""
    groups: Mapping[str, Mapping[str, Any]]
    full_score: float | None
    """What the validator's own score is measured by; None where it gives none."""


@dataclass(frozen=True, slots=True)
class Part:
    """A group as it will be."""

    name: str
    scoring: str
    points: Mapping[int, float]
    depends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    """Tests that are worth their points together, if every one of them is accepted."""

    name: str
    tests: tuple[int, ...]
    points: float

    def part(self, depends: tuple[str, ...] = ()) -> Part:
        """A worst test earns all or nothing: so does this group, each of whose tests bears all of its points."""
        scoring = "sum" if len(self.tests) == 1 else "min"
        return Part(self.name, scoring, dict.fromkeys(self.tests, self.points), depends)


@dataclass(frozen=True, slots=True)
class Parts:
    """Groups that count side by side."""

    parts: tuple[Part, ...]
    may_reject: bool = False
    """Whether the folder may be rejected, and not only where it earns nothing."""


@dataclass(slots=True)
class Folder:
    """A folder of tests; `children` in the order in which they are judged: indices of tests, and folders."""

    path: Path
    name: str
    children: list[int | Folder] = field(default_factory=list)

    def tests(self) -> Iterable[int]:
        for child in self.children:
            yield from child.tests() if isinstance(child, Folder) else (child,)


def points(data: Path, names: Sequence[str], read: ReadYaml, *, legacy: bool, scores: bool) -> Points:
    """Points of the tests so named (`secret/group/01`), whose folders lie in `data`.

    `scores`: whether the validator gives scores of its own. Raises DatasetError.
    """
    root = _tree(data, names)
    rule = _Legacy(data, read, scores) if legacy else _Since2025(data, read, scores)
    parts = rule.parts(root)
    needed = {name for part in parts for name in part.depends}
    parts = tuple(part for part in parts if part.name in needed or any(part.points.values()))
    groups: dict[str, dict[str, Any]] = {}
    tests: dict[int, tuple[float, str]] = {}
    for part in parts:
        groups[part.name] = {"scoring": part.scoring, "depends": part.depends}
        tests.update((index, (worth, part.name)) for index, worth in part.points.items())
    return Points(tests, groups, rule.full_score(parts))


def _tree(data: Path, names: Sequence[str]) -> Folder:
    root = Folder(data, "")
    folders = {"": root}
    for index, name in enumerate(names):
        above = ""
        for folder in name.split("/")[:-1]:
            path = f"{above}/{folder}".lstrip("/")
            if path not in folders:
                folders[path] = Folder(data / path, path)
                folders[above].children.append(folders[path])
            above = path
        folders[above].children.append(index)
    return root


class _Legacy:
    """`testdata.yaml` of a folder, or of the nearest one above that has it, and the default grader."""

    def __init__(self, data: Path, read: ReadYaml, scores: bool) -> None:
        self._read = read
        self._scores = scores
        self._data = data

    def parts(self, root: Folder) -> tuple[Part, ...]:
        worth = self._worth(root)
        return (worth.part(),) if isinstance(worth, Whole) else worth.parts

    def full_score(self, parts: Sequence[Part]) -> float | None:
        return _equal_points(self._data, parts) if self._scores else None

    def _settings(self, folder: Folder) -> _Grading:
        path = folder.path
        while not (path / "testdata.yaml").is_file() and path != self._data:
            path = path.parent
        return _Grading.read(path / "testdata.yaml", self._read)

    def _worth(self, folder: Folder) -> Whole | Parts:
        grading = self._settings(folder)
        children = folder.children
        if grading.ignores_sample and grading.path.parent != self._data:
            raise DatasetError(grading.path, "ignore_sample is for the folder data alone")
        if grading.ignores_sample and not folder.name:
            children = [child for child in children if not (isinstance(child, Folder) and child.name == _SAMPLE)]
        if self._scores and any(isinstance(child, int) for child in children):
            return self._scored(folder, children, grading)
        worths = [
            self._worth(child) if isinstance(child, Folder) else Whole(folder.name, (child,), grading.accept_score)
            for child in children
        ]
        if len(worths) == 1 and not (grading.accepts and not grading.accepts_any):
            # Accepted where the only thing in it is.
            return worths[0]
        return self._accepting(folder, worths, grading) if grading.accepts else self._strict(folder, worths, grading)

    def _scored(self, folder: Folder, children: Sequence[int | Folder], grading: _Grading) -> Parts:
        """Tests whose accepted outputs earn what the validator says."""
        if folder.name == _SAMPLE:
            raise DatasetError(grading.path, "a validator that scores needs ignore_sample: samples' scores would count")
        if not all(isinstance(child, int) for child in children) or (len(children) > 1 and grading.mode != "min"):
            raise DatasetError(grading.path, "of a validator that scores, only the least of a folder's tests can count")
        if not 0 < grading.most < math.inf:
            raise DatasetError(grading.path, "a validator that scores needs a range up to a number")
        return Parts((Part(folder.name, "min", dict.fromkeys(folder.tests(), grading.most)),), may_reject=True)

    def _strict(self, folder: Folder, worths: Sequence[Whole | Parts], grading: _Grading) -> Whole | Parts:
        """A folder that is accepted where all in it is."""
        wholes = [worth for worth in worths if isinstance(worth, Whole)]
        others = [worth for worth in worths if isinstance(worth, Parts)]
        together = None
        if wholes:
            scored = _SCORES[grading.mode]([whole.points for whole in wholes])
            together = wholes[0] if len(wholes) == 1 else _together(folder, wholes, scored)
            if not others:
                return together
        if grading.mode != "sum" or any(other.may_reject for other in others):
            reason = "a folder that must be accepted whole, with others in it that earn part of their points"
            raise DatasetError(grading.path, f"{reason}, cannot be put into points of tests")
        parts = [part for other in others for part in other.parts]
        if together is None:
            return Parts(tuple(parts))
        behind = (replace(part, depends=(*part.depends, together.name)) for part in parts)
        return Parts((together.part(), *behind), may_reject=True)

    def _accepting(self, folder: Folder, worths: Sequence[Whole | Parts], grading: _Grading) -> Parts:
        """A folder that is accepted whatever fails in it."""
        may_reject = grading.accepts_any
        if grading.mode == "min" and all(isinstance(worth, Whole) for worth in worths):
            wholes = [worth for worth in worths if isinstance(worth, Whole)]
            return Parts((_together(folder, wholes, min(whole.points for whole in wholes)).part(),), may_reject)
        if grading.mode not in ("sum", "avg"):
            raise DatasetError(grading.path, f"the {grading.mode} of what is in a folder cannot be put into points")
        factor = 1 / len(worths) if grading.mode == "avg" else 1.0
        if grading.breaks and any(isinstance(worth, Whole) or worth.may_reject for worth in worths[:-1]):
            return Parts(self._until_rejected(worths, grading), may_reject)
        parts: list[Part] = []
        for worth in worths:
            parts += (worth.part(),) if isinstance(worth, Whole) else worth.parts
        return Parts(_joined(_times(part, factor) for part in parts), may_reject)

    def _until_rejected(self, worths: Sequence[Whole | Parts], grading: _Grading) -> tuple[Part, ...]:
        """What comes behind the first that is rejected is not judged, and so earns nothing."""
        parts: list[Part] = []
        depends: tuple[str, ...] = ()
        names: set[str] = set()
        for worth in worths:
            last = worth is worths[-1]
            if isinstance(worth, Parts):
                if worth.may_reject and not last:
                    raise DatasetError(grading.path, "on_reject: break behind a folder that may be accepted in part")
                parts += (replace(part, depends=(*part.depends, *depends)) for part in worth.parts)
                continue
            if grading.mode == "avg" or worth.name in names:
                reason = "on_reject: break where tests earn points one by one: give them on_reject: continue"
                raise DatasetError(grading.path, reason)
            parts.append(worth.part(depends))
            names.add(worth.name)
            depends = (worth.name,)
        return tuple(parts)


@dataclass(frozen=True, slots=True)
class _Grading:
    """One `testdata.yaml`."""

    path: Path
    mode: str = "sum"
    accepts: bool = False
    accepts_any: bool = False
    ignores_sample: bool = False
    breaks: bool = True
    accept_score: float = 1.0
    most: float = math.inf

    @classmethod
    def read(cls, path: Path, read: ReadYaml) -> _Grading:
        content = read(path) if path.is_file() else {}
        if content.get("grading", "default") != "default":
            raise DatasetError(path, "graders of a package's own are not supported")
        if _number(path, "reject_score", content.get("reject_score", 0)) != 0:
            raise DatasetError(path, "points for what was rejected (reject_score) are not supported")
        accept_score = _number(path, "accept_score", content.get("accept_score", 1))
        if not 0 <= accept_score < math.inf:
            raise DatasetError(path, "accept_score must be a number that is not negative")
        breaks = content.get("on_reject", "break")
        if breaks not in ("break", "continue"):
            raise DatasetError(path, f"on_reject is break or continue, not {breaks!r}")
        mode, verdict, flags = "sum", "worst_error", set()
        for flag in str(content.get("grader_flags") or "").split():
            if flag in _SCORES:
                mode = flag
            elif flag in _VERDICTS:
                verdict = flag
            elif flag in _FLAGS:
                flags.add(flag)
            else:
                raise DatasetError(path, f"unknown grader flag {flag!r}")
        any_accepted = "accept_if_any_accepted" in flags
        always = verdict == "always_accept"
        least, _, most = str(content.get("range") or "-inf +inf").strip().partition(" ")
        _number(path, "range", least)
        return cls(
            path,
            mode,
            accepts=always or any_accepted,
            accepts_any=any_accepted and not always,
            ignores_sample="ignore_sample" in flags,
            breaks=breaks == "break",
            accept_score=accept_score,
            most=_number(path, "range", most),
        )


class _Since2025:
    """`test_group.yaml` of `secret` and of the folders in it."""

    def __init__(self, data: Path, read: ReadYaml, scores: bool) -> None:
        self._read = read
        self._scores = scores
        self._secret = data / _SECRET

    def full_score(self, parts: Sequence[Part]) -> float | None:
        return _equal_points(self._secret / "test_group.yaml", parts) if self._scores else None

    def parts(self, root: Folder) -> tuple[Part, ...]:
        folders = {child.name: child for child in root.children if isinstance(child, Folder)}
        secret = folders[_SECRET]
        path, content = self._settings(secret)
        most = _bounded(path, content.get("max_score", 100))
        aggregation = _aggregation(path, content, "sum")
        groups = [child for child in secret.children if isinstance(child, Folder)]
        if groups and len(groups) < len(secret.children):
            raise DatasetError(secret.path, "holds both tests and groups of tests")
        if not groups or aggregation == "pass-fail":
            parts = [self._group(secret.name, tuple(secret.tests()), aggregation, most)]
        else:
            parts = [self._of(group) for group in groups]
        if groups and aggregation == "min":
            if any(part.scoring == "sum" and len(part.points) > 1 for part in parts):
                raise DatasetError(path, "the least of groups that earn part of their points cannot be put into points")
            least = min(worth for part in parts for worth in part.points.values())
            parts = [Whole(secret.name, tuple(secret.tests()), least).part()]
        required = _required(path, content)
        parts = [replace(part, depends=(*part.depends, *required)) for part in parts]
        if any(_SAMPLE in part.depends for part in parts):
            if _SAMPLE not in folders:
                return tuple(replace(part, depends=tuple({*part.depends} - {_SAMPLE})) for part in parts)
            parts.append(Whole(_SAMPLE, tuple(folders[_SAMPLE].tests()), 0.0).part())
        return tuple(parts)

    def _settings(self, folder: Folder) -> tuple[Path, dict[str, Any]]:
        path = folder.path / "test_group.yaml"
        content = self._read(path) if path.is_file() else {}
        if "static_validation_score" in content:
            raise DatasetError(path, "static validators are not supported")
        return path, content

    def _of(self, folder: Folder) -> Part:
        path, content = self._settings(folder)
        most = _bounded(path, content.get("max_score", "unbounded"))
        tests = tuple(folder.tests())
        part = self._group(folder.name, tests, _aggregation(path, content, "pass-fail"), most)
        return replace(part, depends=_required(path, content))

    def _group(self, name: str, tests: tuple[int, ...], aggregation: str, most: float) -> Part:
        if aggregation == "sum":
            return Part(name, "sum", dict.fromkeys(tests, most / len(tests)))
        if aggregation == "min":
            return Part(name, "min", dict.fromkeys(tests, most))
        return Whole(name, tests, most).part()


def _together(folder: Folder, wholes: Sequence[Whole], worth: float) -> Whole:
    return Whole(folder.name or "data", tuple(test for whole in wholes for test in whole.tests), worth)


def _times(part: Part, factor: float) -> Part:
    return replace(part, points={test: worth * factor for test, worth in part.points.items()})


def _joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Tests of one folder that count one by one, as one group."""
    joined: dict[str, Part] = {}
    for part in parts:
        before = joined.get(part.name)
        joined[part.name] = part if before is None else replace(before, points={**before.points, **part.points})
    return tuple(joined.values())


def _equal_points(path: Path, parts: Sequence[Part]) -> float:
    """What one full score of the validator's is, where it is the same for each test that counts."""
    worth = {points for part in parts for points in part.points.values() if points > 0}
    if len(worth) != 1:
        reason = "a validator that scores is supported only where every test is worth as much as any other"
        raise DatasetError(path, reason)
    return worth.pop()


def _aggregation(path: Path, content: dict[str, Any], default: str) -> str:
    aggregation = content.get("score_aggregation", default)
    if aggregation not in ("pass-fail", "sum", "min"):
        raise DatasetError(path, f"score_aggregation is pass-fail, sum or min, not {aggregation!r}")
    return str(aggregation)


def _required(path: Path, content: dict[str, Any]) -> tuple[str, ...]:
    required = content.get("require_pass") or ()
    names = (required,) if isinstance(required, str) else tuple(required)
    return tuple(name if name == _SAMPLE or "/" in name else f"{_SECRET}/{name}" for name in map(str, names))


def _bounded(path: Path, most: Any) -> float:
    if most == "unbounded":
        raise DatasetError(path, "scores without a bound (max_score) are not supported")
    value = _number(path, "max_score", most)
    if not 0 <= value < math.inf:
        raise DatasetError(path, "max_score must be a number that is not negative")
    return value


def _number(path: Path, key: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DatasetError(path, f"{key} needs a number, not {value!r}") from None
