"""What a trainer imports needs httpx and pydantic, with what these need themselves, and nothing more."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def needed(*names: str) -> list[Distribution]:
    """These packages and all that they need."""
    found: dict[str, Distribution] = {}
    left = list(names)
    while left:
        name = canonicalize_name(left.pop())
        if name in found:
            continue
        found[name] = distribution(name)
        requirements = map(Requirement, found[name].requires or ())
        left += [one.name for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    return list(found.values())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with these packages alone."""
    folder = tmp_path_factory.mktemp("site")
    for one in needed("httpx", "pydantic"):
        for top in {file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (folder / top).symlink_to(Path(str(one.locate_file(top))))
    return folder


def said(site: Path, program: str) -> str:
    """What the program prints, with these packages, the standard library and the checkout's own."""
    begin = f"import sys; sys.path[:0] = {[str(ROOT), str(site)]!r}\n"
    # -I and -S: neither the variables nor the packages of whoever runs the tests.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", begin + program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "module",
    [
        "client", "async_client", "rewards", "labels", "rollout", "repair", "tools", "episodes", "calls", "encoded",
        "estimators", "sessions", "token", "workers", "trainers.settings", "trainers.chosen", "trainers.loops",
        "trainers.openrlhf_reward", "trainers.openrlhf_rollout", "trainers.transcript", "trainers.trl_reward",
        "trainers.trl_environments", "trainers.verl_reward",
    ],
)  # fmt: skip
def test_a_module_imports(site: Path, module: str) -> None:
    said(site, f"import rl_client.{module}")


def test_other_packages_are_hidden_and_clients_are_made_all_the_same(site: Path) -> None:
    program = """
import importlib.util, json
from rl_client.async_client import AsyncGrader
from rl_client.client import Grader
Grader("http://grader:8000").close()
AsyncGrader("http://grader:8000")
print(json.dumps([name for name in ("fastapi", "yaml", "zstandard", "rich") if importlib.util.find_spec(name)]))
"""
    assert json.loads(said(site, program)) == []
