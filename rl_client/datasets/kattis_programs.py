"""Programs inside a Kattis package: the language and the sources of an output validator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_client.datasets.base import DatasetError, read_text

_LANGUAGES = {
    ".c": "c",
    ".cpp": "cpp",
    ".cc": "cpp",
    ".cxx": "cpp",
    ".c++": "cpp",
    ".C": "cpp",
    ".py": "python",
    ".py3": "python",
    ".java": "java",
    ".kt": "kotlin",
    ".rs": "rust",
    ".go": "go",
}
_HEADERS = frozenset({".h", ".hh", ".hpp", ".hxx"})


@dataclass(frozen=True, slots=True)
class PackageProgram:
    language: str
    files: dict[str, str]

    def mentions(self, name: str) -> bool:
        """Whether a file is named in its sources, by itself and not as the end of a longer name."""
        return any(re.search(rf"(?<![\w.]){re.escape(name)}", text) for text in self.files.values())

    def fields(self) -> dict[str, Any]:
        """As a checker or an interactor has them on the wire."""
        if len(self.files) == 1:
            (source,) = self.files.values()
            return {"language": self.language, "source": source}
        return {"language": self.language, "files": self.files}


def read_program(path: Path, root: Path) -> PackageProgram:
    """The program in a file, or in a folder of files; `root` is what no link may leave.

    Raises DatasetError where it is not wholly of sources in one known language.
    """
    files: dict[str, str] = {}
    languages: dict[str, Path] = {}
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if file.name.startswith("."):
            continue
        if not file.resolve().is_relative_to(root):
            raise DatasetError(file, "links to a file outside the package")
        if file.is_dir():
            raise DatasetError(file, "programs with folders of their own are not supported")
        language = _LANGUAGES.get(file.suffix)
        if language is None and file.suffix not in _HEADERS:
            raise DatasetError(file, "no source in a language that validators are taken in")
        if language is not None:
            languages.setdefault(language, file)
        files[file.name] = read_text(file)
    if not languages:
        raise DatasetError(path, "holds no program")
    if languages.keys() == {"c", "cpp"}:
        languages.pop("c")
    if len(languages) > 1:
        raise DatasetError(path, f"holds sources in {' and '.join(sorted(languages))}")
    return PackageProgram(next(iter(languages)), files)
