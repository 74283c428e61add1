"""The registry of languages, and that each entry really runs."""

from __future__ import annotations

from collections import Counter

import pytest

from sandbox import languages
from sandbox.errors import UnknownLanguage
from sandbox.judge import Judge
from sandbox.languages import REGISTRY, Language, Start
from sandbox.problem import Submission
from sandbox.verdicts import Verdict
from tests.sandbox.cells import ROOMY, problem

NAMES = [(name, entry.id) for entry in REGISTRY.values() for name in (entry.id, *entry.aliases)]


def test_no_name_means_two_languages() -> None:
    counted = Counter(name for name, _ in NAMES)
    assert {name: times for name, times in counted.items() if times > 1} == {}


def test_names_are_lower_case_so_that_any_case_finds_them() -> None:
    assert [name for name, _ in NAMES if name != name.lower()] == []


@pytest.mark.parametrize(("name", "language_id"), NAMES)
def test_resolve_takes_any_case(name: str, language_id: str) -> None:
    assert {languages.resolve(spelt).id for spelt in (name, name.upper(), name.title())} == {language_id}


@pytest.mark.parametrize("name", ["", " python", "cobol", "python\0", "C++ 17"])
def test_what_is_not_there_is_named_with_what_is(name: str) -> None:
    with pytest.raises(UnknownLanguage) as refused:
        languages.resolve(name)
    assert repr(name) in str(refused.value)
    assert all(entry in str(refused.value) for entry in REGISTRY)


def test_a_toolchain_that_is_missing_is_said_to_be() -> None:
    absent = Language("x", "X", "main.x", run=("/prog/main",), version_command=("/nonexistent/xc", "--version"))
    with pytest.raises(UnknownLanguage, match="X cannot run here: /nonexistent/xc is not installed"):
        languages.version(absent)


def test_a_forked_interpreter_is_a_checked_one() -> None:
    """The zygote is made by the check: without it there is nothing to fork."""
    assert [entry.id for entry in REGISTRY.values() if entry.start is Start.ZYGOTE and not entry.checks_python] == []


@pytest.mark.jail
def test_all_languages_are_installed_where_these_tests_run() -> None:
    available = languages.available()
    assert [entry.id for entry in available] == list(REGISTRY)
    assert all(any(digit.isdigit() for digit in entry.version) for entry in available)


@pytest.mark.jail
@pytest.mark.parametrize("language_id", REGISTRY)
def test_the_self_test_prints_the_sum(judge: Judge, language_id: str) -> None:
    sums = problem((b"1 2\n", b"3\n"), (b"-40 2000000001\n", b"2000000001\n"), (b"-40 2000000001\n", b"1999999961\n"))
    judgement = judge.judge(Submission(sums, language_id, REGISTRY[language_id].self_test.encode(), ROOMY))
    assert [result.verdict for result in judgement.tests] == [
        Verdict.ACCEPTED,
        Verdict.WRONG_ANSWER,
        Verdict.ACCEPTED,
    ]
    assert judgement.language_version == languages.version(REGISTRY[language_id])
