"""What tests of `rkgrade audit` share: programs, packages of them, the command itself, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from rl_client.audit.rows import ProblemRow
from rl_client.cli import build
from tests.rl_client.datasets.test_codecontests_plus import BETWEEN
from tests.rl_client.datasets.test_kattis import write_package

EXAMPLE = Path(__file__).parents[3] / "examples" / "two-sum-count"

ADD = "print(sum(map(int, input().split())))"
CONSTANT = "print(3)"
SLOW = "while True: pass"
CRASH = "1 / 0"
CPP_ADD = "#include <iostream>\nint main() { long long a, b; std::cin >> a >> b; std::cout << a + b; }\n"

FAST = {"problem.yaml": "problem_format_version: 2025-09\nname: Sum\nlimits:\n  time_limit: 0.3\n"}


def rkgrade(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(build(), ["audit", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def report(path: Path) -> list[ProblemRow]:
    return [ProblemRow.model_validate_json(line) for line in path.read_text().splitlines()]


def package(directory: Path, submissions: Mapping[str, str | bytes], **files: str) -> Path:
    placed: dict[str, str | bytes | None] = {f"submissions/{name}": text for name, text in submissions.items()}
    return write_package(directory, {**FAST, **files, **placed})


def told_apart(row: ProblemRow) -> tuple[float | None, float | None, tuple[str, ...]]:
    return row.tpr, row.tnr, row.quarantine


def contests_plus(key: str, **change: Any) -> dict[str, Any]:
    """A row of CodeContests+, in which any number up to the input's is right."""
    return {
        "source": "Codeforces",
        "id": key,
        "title": key,
        "time_limit": 1000,
        "memory_limit": 256,
        "checker": BETWEEN,
        "correct_submissions": [
            {"language": "py3", "code": "print(input())"},
            {"language": "py3", "code": "print(1)"},
            {"language": "cpp", "code": '#include <cstdio>\nint main() { puts("1"); }'},
            {"language": "py2", "code": "print 1"},
        ],
        "incorrect_submissions": [
            {"language": "py3", "code": "print(0)"},
            {"language": "py3", "code": "print(4)"},
            {"language": "java", "code": None},
        ],
        "test_cases": [{"input": "3\n", "output": "1\n"}, {"input": "10\n", "output": "1\n"}],
    } | change
