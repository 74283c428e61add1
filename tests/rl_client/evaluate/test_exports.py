"""Programs in the forms of other tools."""

from __future__ import annotations

from pathlib import Path

from rl_client.evaluate.exports import write_evalplus, write_livecodebench
from rl_client.evaluate.tasks import Task
from tests.rl_client.evaluate.models import lines


def test_problems_have_the_names_and_the_order_of_the_tool(tmp_path: Path) -> None:
    path = tmp_path / "programs"
    programs = [(Task("", "sha256:0", key, "", ""), ["a", ""]) for key in ("HumanEval/1", "2")]
    write_evalplus(path, programs)
    assert [(one["task_id"], one["solution"]) for one in lines(path)] == [
        ("HumanEval/1", "a"),
        ("HumanEval/1", ""),
        ("Mbpp/2", "a"),
        ("Mbpp/2", ""),
    ]
    write_livecodebench(path, programs)
    assert lines(path) == [
        [{"question_id": "2", "code_list": ["a", ""]}, {"question_id": "HumanEval/1", "code_list": ["a", ""]}]
    ]
