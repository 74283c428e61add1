"""Call problems, seen from outside the jail: a run that calls one function, and what the function's result is worth.

What a run hands out lies in a memfd of its own, beside stdout and stderr. It was written by the stranger's process and
is taken for that: one whole JSON object of the form that `sandbox.jail.call` writes, or it is nothing. Of what it says
only a value counts for the program, by being the expected one; all else only names the failure.
"""

from __future__ import annotations

import builtins
import json
import os
from dataclasses import dataclass, replace

from sandbox.checkers.base import Checker, CheckerProgram
from sandbox.checkers.quoting import quote
from sandbox.errors import UnknownLanguage
from sandbox.languages import REGISTRY, Language, Start
from sandbox.problem import Call, Limits, Problem, Test
from sandbox.run import Output, RunRecord, RunRequest
from sandbox.starting import program_request
from sandbox.trials import Outcome
from sandbox.verdicts import Verdict, decide

#: Languages whose programs can be called.
LANGUAGES = tuple(language.id for language in REGISTRY.values() if language.checks_python)

#: A result that is no value is short: the name of a type, an exception or a function.
MAX_WORDS_BYTES = 1024

_VALUE, _END = b'{"value":', b"}"

_EXCEPTIONS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
)

#: Imported, so that it is not compiled anew for each test.
_FRESH = 'import sys; sys.path[0] = "/rkgrade"; import call; call.main({function!r}, {prelude!r})'


@dataclass(frozen=True, slots=True)
class CallTrials:
    problem: Problem
    call: Call
    language: Language
    limits: Limits

    def __post_init__(self) -> None:
        """Raises UnknownLanguage where functions of its programs cannot be called."""
        if self.language.id not in LANGUAGES:
            raise UnknownLanguage(
                f"call problems are for {', '.join(LANGUAGES)}; {self.language.id} has no way to call"
            )

    @property
    def zygote_argv(self) -> tuple[str, ...]:
        return (self.call.function, self.call.prelude)

    def trial(self, test: Test) -> CallTrial:
        arguments_fd = test.stdin.open()
        nothing_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        result = Output.new("result")
        request = replace(
            program_request(self.language, nothing_fd, self.limits),
            extra_fds=(arguments_fd, result.fd),
            output_fds=(result.fd,),
        )
        if self.language.start is not Start.ZYGOTE:
            fresh = _FRESH.format(function=self.call.function, prelude=self.call.prelude)
            request = replace(request, argv=(*request.argv[:-1], "-c", fresh))
        assert not isinstance(self.problem.checker, CheckerProgram)
        return CallTrial(self.problem, self.problem.checker, self.call, test, request, result)


@dataclass(frozen=True, slots=True)
class CallTrial:
    problem: Problem
    checker: Checker
    call: Call
    test: Test
    request: RunRequest
    result: Output

    def verdict(self, record: RunRecord) -> Verdict | None:
        return decide(record.evidence, ignore_exit_code=self.problem.ignore_exit_code)

    def outcome(self, record: RunRecord, verdict: Verdict | None) -> Outcome:
        if verdict is Verdict.RUNTIME_ERROR:
            return Outcome(verdict, self._failure())
        if verdict is not None:
            return Outcome(verdict)
        with self.result.view() as text:
            if text[: len(_VALUE)] == _VALUE and text[-len(_END) :] == _END:
                with text[len(_VALUE) : -len(_END)] as value:
                    checked = self.checker.check(value, self.test.expected)
                return Outcome.of(checked)
        words = self._words()
        if (reason := words.get("not_plain")) is not None:
            return Outcome(Verdict.WRONG_ANSWER, checker_message=f"returned no plain data: {_shown(reason)}")
        if len(self.result) and not words:
            return Outcome(Verdict.WRONG_ANSWER, checker_message="what was handed out is not one result")
        return Outcome(Verdict.RUNTIME_ERROR, self._failure() or "ended without a result")

    def judged(self, record: RunRecord) -> Output | None:
        return self.result

    def _failure(self) -> str:
        """Why there is no result, as far as that can be said without a word of the program's own."""
        words = self._words()
        if "missing" in words:
            return f"the program defines no {self.call.function}"
        if words.get("raised") in _EXCEPTIONS:
            return f"raised {words['raised']}"
        return ""

    def _words(self) -> dict[str, str]:
        """What was handed out in place of a value; empty where that is nothing of the kind."""
        if len(self.result) > MAX_WORDS_BYTES:
            return {}
        try:
            words = json.loads(self.result.head(MAX_WORDS_BYTES))
        except (ValueError, RecursionError):
            return {}
        if isinstance(words, dict) and len(words) == 1 and words.keys() <= {"missing", "raised", "not_plain"}:
            return {key: text for key, text in words.items() if isinstance(text, str)}
        return {}

    def close(self) -> None:
        arguments_fd, _ = self.request.extra_fds
        os.close(arguments_fd)
        os.close(self.request.stdin_fd)
        self.result.close()


def _shown(text: str) -> str:
    return quote(text.encode("utf-8", "replace"))[1:-1]
