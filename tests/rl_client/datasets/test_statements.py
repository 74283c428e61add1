"""What a model is told, as the sets have it."""

from __future__ import annotations

from typing import Any

import pytest

from rl_client.datasets.base import readers
from rl_client.datasets.row import Row, RowError
from rl_client.datasets.statements import Statement
from tests.rl_client.datasets.test_code_contests import ROW as CODE_CONTESTS
from tests.rl_client.datasets.test_evalplus import HUMANEVAL, MBPP
from tests.rl_client.datasets.test_livecodebench import CALL, STDIN
from tests.rl_client.datasets.test_taco import ROW as TACO


@pytest.mark.parametrize(
    ("name", "row", "text", "starter"),
    [
        ("livecodebench", STDIN, "Add.", ""),
        ("livecodebench", CALL, "Add.", CALL["starter_code"]),
        ("taco", TACO, "Add.", ""),
        ("apps", {"question": "Add.", "starter_code": "def add(a, b):"}, "Add.", "def add(a, b):"),
        ("code-contests", CODE_CONTESTS, "Sort.", ""),
        ("codecontests-plus", {"description": "Sort."}, "Sort.", ""),
        ("humaneval-plus", HUMANEVAL, "Complete this function, as its docstring has it.", HUMANEVAL["prompt"]),
        (
            "mbpp-plus",
            MBPP,
            "Write a function to add numbers.\n\nYour function is to pass this test:\n\nassert total([1, 2]) == 3",
            "",
        ),
        ("problems", {"statement": "Add."}, "Add.", ""),
    ],
)
def test_a_statement_is_read(name: str, row: dict[str, Any], text: str, starter: str) -> None:
    reader = readers()[name].statement
    assert reader is not None
    assert reader.read(Row(row)) == Statement(text, starter)
    with pytest.raises(RowError, match=r"missing|names no function"):
        reader.read(Row({}))
