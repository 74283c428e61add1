"""The languages: one entry each, in the module of its family. Adding one touches nothing but that and its test.

Knows how a source becomes something to run, and nothing of cells or of how runs are judged.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from collections.abc import Collection, Mapping
from types import MappingProxyType

from sandbox.errors import UnknownLanguage
from sandbox.languages import c_family, functional, jvm, native, python, scripting, web
from sandbox.languages.base import InstalledLanguage, Language, Prebuilt, Start
from sandbox.languages.c_family import C_SUM, CPP_SUM, HEADERS_IN_JAIL
from sandbox.languages.python import PYTHON, PYTHON_LIBRARIES, PYTHON_SUM

__all__ = [
    "CPP_SUM",
    "C_SUM",
    "HEADERS_IN_JAIL",
    "PYTHON",
    "PYTHON_LIBRARIES",
    "PYTHON_SUM",
    "REGISTRY",
    "InstalledLanguage",
    "Language",
    "Prebuilt",
    "Start",
    "available",
    "installed",
    "missing",
    "named",
    "resolve",
    "version",
]

_FAMILIES = (python, c_family, jvm, web, native, functional, scripting)

REGISTRY: Mapping[str, Language] = MappingProxyType(
    {language.id: language for family in _FAMILIES for language in family.LANGUAGES}
)
_BY_NAME = {name: entry for entry in REGISTRY.values() for name in (entry.id, *entry.aliases)}

VERSION_S = 30


def resolve(name: str) -> Language:
    """The language of that id or alias, whatever its case. Raises UnknownLanguage."""
    language = _BY_NAME.get(name.lower())
    if language is None:
        raise UnknownLanguage(f"unknown language {name!r}; known are {', '.join(sorted(REGISTRY))}")
    return language


def missing(language: Language) -> str | None:
    """The first file that the language needs and this host lacks; None where it has them all."""
    for path in (language.version_command[0], *language.needs):
        if not os.access(path, os.R_OK):
            return path
    return None


@functools.cache
def version(language: Language) -> str:
    """The toolchain's own word on its version. Raises UnknownLanguage where it is not installed, or does not work."""
    lacking = missing(language)
    if lacking is not None:
        raise UnknownLanguage(f"{language.name} cannot run here: {lacking} is not installed")
    command = language.version_command
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=VERSION_S, check=True, env={"LANG": "C", "HOME": "/"}
        )
        return next(line.strip() for line in (answer.stdout + answer.stderr).splitlines() if line.strip())
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        raise UnknownLanguage(f"{language.name} cannot run here: {' '.join(command)} failed: {error}") from error


def installed(offered: Collection[str] | None = None) -> tuple[Language, ...]:
    """The languages whose toolchain is on this host, of those offered (ids; None for all)."""
    return tuple(
        language
        for language in REGISTRY.values()
        if (offered is None or language.id in offered) and missing(language) is None
    )


def available(offered: Collection[str] | None = None) -> tuple[InstalledLanguage, ...]:
    """What can be run here, for people and for `GET /languages`; a toolchain that does not answer is left out."""
    found = []
    for entry in installed(offered):
        with contextlib.suppress(UnknownLanguage):
            found.append(InstalledLanguage(entry.id, entry.name, version(entry), entry.aliases))
    return tuple(found)


def named(names: str) -> frozenset[str] | None:
    """The ids that a list of names, separated by commas, stands for; None for "all". Raises UnknownLanguage."""
    words = [word.strip() for word in names.split(",")]
    if words == ["all"]:
        return None
    chosen = [language.id for language in REGISTRY.values() if language.is_default] if "default" in words else []
    return frozenset([*chosen, *(resolve(word).id for word in words if word != "default")])
