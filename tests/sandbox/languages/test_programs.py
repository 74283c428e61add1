"""Each language that is installed here, through the same ten programs; of the default set all must be.

The programs lie in `programs/`, a file a language (or several, where they are the same language to a program), each
under its name. What a program is given and what must come of it is said here, once for all languages.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from sandbox import languages
from sandbox.judge import Judge
from sandbox.languages import REGISTRY
from sandbox.problem import Judgement, Limits, Submission
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, problem

pytestmark = pytest.mark.jail

PROGRAMS = Path(__file__).parent / "programs"

#: Languages that read the programs of another.
SAME = {
    "python-exec": "python",
    "pypy": "python",
    **dict.fromkeys(("cpp20", "cpp23", "cpp-clang", "cpp20-clang", "cpp23-clang"), "cpp"),
}

#: What these languages do not have: threads of their own, or room for calls a hundred thousand deep (R keeps its own
#: stack of 200,000 entries, whatever the limits; Bash takes a process's memory for a call).
WITHOUT = {
    ("bash", "recursion"),
    ("fortran", "threads"),
    ("lua", "threads"),
    ("php", "threads"),
    ("r", "recursion"),
    ("r", "threads"),
}

NAMES = (
    "compile_error",
    "runtime_error",
    "time_limit",
    "memory_limit",
    "recursion",
    "read",
    "write",
    "threads",
)

LINES = 10**6
DEEP = 100_000

#: A default language that is not installed is to fail here, not to be left out.
TESTED = [entry.id for entry in REGISTRY.values() if entry.is_default or languages.missing(entry) is None]


def every(name: str) -> pytest.MarkDecorator:
    """Run the test for each language that has the program."""
    return pytest.mark.parametrize("language_id", [one for one in TESTED if (one, name) not in WITHOUT])


ROOMY = Limits(cpu_s=20.0, wall_s=120.0, memory_bytes=512 * MB, output_bytes=16 * MB)


@functools.cache
def programs(language_id: str) -> dict[str, str]:
    text = (PROGRAMS / f"{SAME.get(language_id, language_id)}.txt").read_text()
    return dict(re.findall(r"^=== (\w+)\n(.*?)(?=^=== |\Z)", text, re.M | re.S))


@functools.cache
def many_lines() -> bytes:
    return b"%d\n" % LINES + b"".join(b"%d\n" % (value % 1000) for value in range(LINES))


def judged(
    judge: Judge,
    language_id: str,
    name: str,
    limits: Limits,
    given: bytes = b"",
    wanted: bytes = b"",
) -> Judgement:
    source = programs(language_id)[name].encode()
    return judge.judge(Submission(problem((given, wanted)), language_id, source, limits))


def the_verdict(judgement: Judgement) -> tuple[Verdict, str, bytes]:
    """With what else there is to say of it, should it be another."""
    assert judgement.compile is None or judgement.compile.ok, judgement.compile.message
    (result,) = judgement.tests
    return result.verdict, result.message, result.stderr_tail


@pytest.mark.parametrize("language_id", REGISTRY)
def test_every_language_has_every_program(language_id: str) -> None:
    assert {name for name in NAMES if (language_id, name) not in WITHOUT} == set(programs(language_id))


@every("compile_error")
def test_a_program_that_is_none_is_told_of_before_it_runs(judge: Judge, language_id: str) -> None:
    judgement = judged(judge, language_id, "compile_error", ROOMY)
    assert judgement.compile is not None
    assert (judgement.compile.ok, judgement.tests) == (False, ())
    assert judgement.compile.message.strip() != ""


@every("runtime_error")
def test_a_program_that_fails(judge: Judge, language_id: str) -> None:
    assert the_verdict(judged(judge, language_id, "runtime_error", ROOMY))[0] is Verdict.RUNTIME_ERROR


@every("time_limit")
def test_a_program_without_end(judge: Judge, language_id: str) -> None:
    limits = Limits(cpu_s=0.5, wall_s=30.0, memory_bytes=256 * MB)
    verdict = the_verdict(judged(judge, language_id, "time_limit", limits))
    assert verdict[0] is Verdict.TIME_LIMIT, verdict


@every("memory_limit")
def test_a_program_that_takes_all_memory(judge: Judge, language_id: str) -> None:
    limits = Limits(cpu_s=20.0, wall_s=120.0, memory_bytes=192 * MB)
    verdict = the_verdict(judged(judge, language_id, "memory_limit", limits))
    assert verdict[0] is Verdict.MEMORY_LIMIT, verdict


@every("recursion")
def test_deep_recursion(judge: Judge, language_id: str) -> None:
    """The stack may take all of the memory limit."""
    answer = b"%d\n" % DEEP
    verdict = the_verdict(judged(judge, language_id, "recursion", ROOMY, answer, answer))
    assert verdict[0] is Verdict.ACCEPTED, verdict


@every("read")
def test_a_million_lines_in(judge: Judge, language_id: str) -> None:
    total = b"%d\n" % (LINES // 1000 * sum(range(1000)))
    verdict = the_verdict(judged(judge, language_id, "read", ROOMY, many_lines(), total))
    assert verdict[0] is Verdict.ACCEPTED, verdict


@every("write")
def test_a_million_lines_out(judge: Judge, language_id: str) -> None:
    answer = b"".join(b"%d\n" % value for value in range(1, LINES + 1))
    verdict = the_verdict(judged(judge, language_id, "write", ROOMY, b"", answer))
    assert verdict[0] is Verdict.ACCEPTED, verdict


@every("threads")
def test_threads(judge: Judge, language_id: str) -> None:
    verdict = the_verdict(judged(judge, language_id, "threads", ROOMY, b"", b"2002000\n"))
    assert verdict[0] is Verdict.ACCEPTED, verdict
