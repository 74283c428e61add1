"""The registry of languages, and that each entry really runs."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace

import pytest

from sandbox import languages
from sandbox.config import SandboxConfig
from sandbox.errors import UnknownLanguage
from sandbox.judge import Judge
from sandbox.languages import REGISTRY, Language, Start
from sandbox.problem import Limits, Submission
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, ROOMY, problem

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


def test_lists_of_names_are_read() -> None:
    default = {entry.id for entry in REGISTRY.values() if entry.is_default}
    assert languages.named("all") is None
    assert languages.named("default") == default
    assert languages.named("default, c#,kotlin") == default | {"csharp", "kotlin"}
    assert languages.named("py3") == {"python"}
    with pytest.raises(UnknownLanguage):
        languages.named("python,,java")


def test_limits_become_part_of_the_command() -> None:
    language = Language(
        "x", "X", "main.x", run=("x", "-m{memory_mb}", "-h{heap_mb}", "-s{stack_kb}", "-f{most_stack_kb}", "{y}"),
        version_command=("/usr/bin/x",), heap_overhead_mb=64,
    )  # fmt: skip
    assert language.command(256 * MB) == ("x", "-m256", "-h192", "-s262144", "-f245760", "{y}")
    # Half of a small limit at least; and no stack larger than the jail's.
    assert language.command(100 * MB)[1:3] == ("-m100", "-h50")
    assert language.command(4096 * MB)[3:5] == ("-s1048576", "-f983040")


@pytest.mark.jail
def test_what_is_installed_is_listed_with_its_version() -> None:
    """The default set must be here, wherever these tests run: set-up installs it."""
    available = {entry.id: entry for entry in languages.available()}
    assert [entry.id for entry in REGISTRY.values() if entry.is_default and entry.id not in available] == []
    assert [entry for entry in available.values() if not any(digit.isdigit() for digit in entry.version)] == []
    assert [entry.id for entry in languages.available({"python", "c"})] == ["python", "c"]


@pytest.mark.jail
@pytest.mark.parametrize("language_id", [entry.id for entry in languages.installed()])
def test_the_self_test_prints_the_sum(judge: Judge, language_id: str) -> None:
    sums = problem((b"1 2\n", b"3\n"), (b"-40 2000000001\n", b"2000000001\n"), (b"-40 2000000001\n", b"1999999961\n"))
    judgement = judge.judge(Submission(sums, language_id, REGISTRY[language_id].self_test.encode(), ROOMY))
    assert [(result.verdict, result.stderr_tail) for result in judgement.tests] == [
        (Verdict.ACCEPTED, b""),
        (Verdict.WRONG_ANSWER, b""),
        (Verdict.ACCEPTED, b""),
    ]
    assert judgement.language_version == languages.version(REGISTRY[language_id])


@pytest.mark.jail
def test_time_factors_multiply_the_limits_of_their_language(sandbox_config: SandboxConfig) -> None:
    judge = Judge(replace(sandbox_config, time_factors={"c": 4.0}), slot=1, core=None)
    busy = b"#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC * 6 / 10); }\n"
    limits = Limits(cpu_s=0.3, wall_s=10.0)
    with contextlib.closing(judge):
        verdicts = [
            judge.judge(Submission(problem((b"", b"")), language, busy, limits)).tests[0].verdict
            for language in ("c", "cpp")
        ]
    assert verdicts == [Verdict.ACCEPTED, Verdict.TIME_LIMIT]
