"""The key of a result: a hash over all that it depends on, and over nothing else of a request.

Who asks, under which id, how urgently: none of that is in it.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import astuple
from pathlib import Path

import sandbox
import service
from sandbox import compiling, languages
from sandbox.checkers.base import CheckerProgram
from sandbox.errors import UnknownLanguage
from sandbox.problem import Problem, Submission
from service.contract import GradeRequest, GraderInfo


@functools.cache
def code_digest() -> str:
    """Of this grader's own code: a release that judges otherwise answers nothing with what an older one found."""
    digest = hashlib.sha256()
    for package in (sandbox, service):
        folder = Path(package.__path__[0])
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
            digest.update(f"{package.__name__}/{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def name_of(submission: Submission, request: GradeRequest, grader: GraderInfo, host: str) -> str:
    """`submission` with the limits that it really runs under; `host`: what else of this host results hang on.

    Raises UnknownLanguage.
    """
    language = languages.resolve(submission.language)
    parts = [
        code_digest(),
        host,
        grader.model_dump(),
        request.problem,
        language.id,
        # The toolchain's version, its flags, and the program.
        compiling.cache_key(language, submission.source),
        language.run,
        _jury_versions(submission.problem),
        astuple(submission.limits),
        request.stop,
        request.taxonomy,
        request.length_unit,
        request.detail,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _jury_versions(problem: Problem) -> list[str]:
    """Of the toolchains that the problem's own programs are compiled or run by."""
    found = [problem.checker, None if problem.dialogue is None else problem.dialogue.checker]
    names = sorted({one.program.language for one in found if isinstance(one, CheckerProgram)})
    versions = []
    for name in names:
        try:
            versions.append(languages.version(languages.resolve(name)))
        except UnknownLanguage:
            versions.append("missing")
    return versions
