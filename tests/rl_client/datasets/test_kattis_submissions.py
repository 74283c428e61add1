"""Example submissions: which folders mean what, what submissions.yaml adds, and which programs cannot be graded."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_client.datasets.base import DatasetError
from rl_client.datasets.kattis_submissions import read_submissions
from rl_client.datasets.submissions import Submission
from service.contract import TestRow, Verdict
from tests.rl_client.datasets.test_kattis import write_package

AC, WA, TLE, RTE = Verdict.ACCEPTED, Verdict.WRONG_ANSWER, Verdict.TIME_LIMIT, Verdict.RUNTIME_ERROR
NEW = {"problem.yaml": "problem_format_version: 2025-09\nname: Sum\n"}


def read(directory: Path, files: dict[str, str | bytes | None]) -> dict[str, Submission]:
    placed = {name if name in ("problem.yaml",) else f"submissions/{name}": content for name, content in files.items()}
    return {one.name: one for one in read_submissions(write_package(directory, placed))}


def objects(one: Submission, *verdicts: Verdict, names: tuple[str, ...] = ()) -> bool:
    """Whether results of these tests are otherwise than is said of the program."""
    tests = [
        TestRow(index=index, name=names[index] if names else f"secret/{index}", input_length=1, verdict=verdict)
        for index, verdict in enumerate(verdicts)
    ]
    return one.objection(tests) is not None


def test_a_package_without_submissions_has_none(tmp_path: Path) -> None:
    assert read(tmp_path, {}) == {}


def test_programs_have_their_folders_name_for_a_label_and_a_language_by_their_ending(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            "accepted/a.py": "print(1)\n",
            "accepted/b.cc": "int main() {}\n",
            "accepted/C/Main.java": "class Main {}\n",
            "wrong_answer/a.py3": "print(2)\n",
            "wrong_answer/old.py2": "print 2\n",
            "wrong_answer/logic.pl": "main.\n",
            "wrong_answer/x.adb": "begin\n",
            "wrong_answer/.hidden": "x",
            "README.md": "x",
        },
    )
    assert {name: (one.label, one.correct, one.language, one.unusable) for name, one in found.items()} == {
        "accepted/C": ("accepted", True, "java", ""),
        "accepted/a.py": ("accepted", True, "python3", ""),
        "accepted/b.cc": ("accepted", True, "cpp", ""),
        "wrong_answer/a.py3": ("wrong_answer", False, "python3", ""),
        "wrong_answer/logic.pl": ("wrong_answer", False, "prolog", ""),
        "wrong_answer/old.py2": ("wrong_answer", False, "python2", ""),
        "wrong_answer/x.adb": ("wrong_answer", False, ".adb", ""),
    }
    assert found["accepted/C"].source == "class Main {}\n"


FAILURES = {"WA": WA, "TLE": TLE, "RTE": RTE}


@pytest.mark.parametrize(
    ("version", "folder", "fits"),
    [
        ("2025-09", "rejected", "WA TLE RTE"),
        ("2025-09", "wrong_answer", "WA"),
        ("2025-09", "time_limit_exceeded", "TLE"),
        ("2025-09", "run_time_error", "RTE"),
        ("2025-09", "brute_force", "TLE RTE"),
        ("legacy", "partially_accepted", "WA TLE RTE"),
        ("legacy", "wrong_answer", "WA"),
        ("legacy", "time_limit_exceeded", "TLE"),
        ("legacy", "run_time_error", "RTE"),
    ],
)
def test_what_a_folder_says_of_a_wrong_program(tmp_path: Path, version: str, folder: str, fits: str) -> None:
    files: dict[str, str | bytes | None] = {
        "problem.yaml": f"problem_format_version: {version}\n",
        f"{folder}/a.py": "1",
    }
    (one,) = read(tmp_path, files).values()

    assert (one.correct, one.unusable) == (False, "")
    for name, verdict in FAILURES.items():
        assert objects(one, AC, verdict) == (name not in fits.split())
    assert objects(one, AC, AC)


@pytest.mark.parametrize(
    ("verdict", "folder"),
    [
        (Verdict.IDLE, "time_limit_exceeded"),
        (Verdict.MEMORY_LIMIT, "run_time_error"),
        (Verdict.OUTPUT_LIMIT, "run_time_error"),
        (Verdict.OUTPUT_LIMIT, "wrong_answer"),
    ],
)
def test_verdicts_that_the_format_has_no_word_for(tmp_path: Path, verdict: Verdict, folder: str) -> None:
    (one,) = read(tmp_path, {f"{folder}/a.py": "1"}).values()
    assert not objects(one, AC, verdict)


def test_a_slow_program_may_be_wrong_too_in_the_legacy_format_alone(tmp_path: Path) -> None:
    (old,) = read(tmp_path / "old", {"time_limit_exceeded/a.py": "1"}).values()
    (new,) = read(tmp_path / "new", NEW | {"time_limit_exceeded/a.py": "1"}).values()
    assert (objects(old, WA, TLE), objects(new, WA, TLE)) == (False, True)


def test_the_settings_replace_add_and_name_languages(tmp_path: Path) -> None:
    settings = """
time_limit_exceeded:
  permitted: [AC, WA, TLE]
wrong_answer/{a,b}.py:
  required: [RTE]
wrong_answer/c*:
  language: cpp
mixed/good.txt:
  language: python3
  permitted: [AC]
mixed/bad.py:
  sample:
    permitted: [AC]
  secret/*-hard:
    required: [TLE]
mixed/either.py:
  permitted: [AC, TLE]
accepted/*:
  authors: Somebody
"""
    found = read(
        tmp_path,
        NEW
        | {
            "submissions.yaml": settings,
            "accepted/a.py": "1",
            "time_limit_exceeded/a.py": "1",
            "wrong_answer/b.py": "1",
            "wrong_answer/c.py": "1",
            "mixed/good.txt": "1",
            "mixed/bad.py": "1",
            "mixed/either.py": "1",
            "mixed/silent.py": "1",
        },
    )

    assert not objects(found["time_limit_exceeded/a.py"], WA, TLE)
    assert objects(found["wrong_answer/b.py"], AC, WA)
    assert (found["wrong_answer/c.py"].language, objects(found["wrong_answer/c.py"], AC, WA)) == ("cpp", False)
    assert (found["mixed/good.txt"].correct, found["mixed/good.txt"].language) == (True, "python3")
    bad = found["mixed/bad.py"]
    assert not bad.correct
    assert not objects(bad, AC, TLE, WA, names=("sample/1", "secret/1-hard", "secret/2-easy"))
    assert objects(bad, AC, AC, TLE, names=("sample/1", "secret/1-hard", "secret/2-easy"))
    assert objects(bad, WA, TLE, AC, names=("sample/1", "secret/1-hard", "secret/2-easy"))
    unlabelled = "no label says whether it passes"
    assert [found[f"mixed/{name}.py"].unusable for name in ("either", "silent")] == [unlabelled] * 2
    assert found["accepted/a.py"].correct


def test_programs_that_cannot_be_graded_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("print(1)")
    package = tmp_path / "package"
    (package / "submissions" / "accepted").mkdir(parents=True)
    (package / "submissions" / "accepted" / "linked.py").symlink_to(tmp_path / "outside.py")
    (package / "submissions" / "accepted" / "root").symlink_to("/usr")
    found = read(
        package,
        {
            "accepted/two/a.py": "1",
            "accepted/two/b.py": "1",
            "accepted/none/.keep": "",
            "accepted/empty.py": "\n",
            "accepted/latin.py": b"# \xe9\n",
        },
    )
    assert {name: one.unusable for name, one in found.items()} == {
        "accepted/empty.py": "no source",
        "accepted/latin.py": "not UTF-8",
        "accepted/linked.py": "links to a file outside the package",
        "accepted/none": "no source",
        "accepted/root": "links to a file outside the package",
        "accepted/two": "several files",
    }


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("accepted: 1\n", "accepted: must hold a map of settings"),
        ("a.py: {permitted: [OK]}\n", "a.py: permitted must be a list of AC, WA, TLE, RTE"),
        ("a.py: {required: []}\n", "a.py: required must be a list of AC, WA, TLE, RTE"),
        ("a.py: {secret: {required: 7}}\n", "a.py: secret: required must be a list of AC, WA, TLE, RTE"),
        ("- a\n", "must hold a map of settings"),
        ("a: [\n", "not YAML"),
    ],
)
def test_settings_that_are_malformed(tmp_path: Path, settings: str, reason: str) -> None:
    with pytest.raises(DatasetError) as error:
        read(tmp_path, {"submissions.yaml": settings, "accepted/a.py": "1"})
    assert error.value.path.name == "submissions.yaml"
    assert reason in error.value.reason
