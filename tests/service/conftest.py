"""What the tests of the service send again and again."""

from __future__ import annotations

from typing import Any

import pytest

SUM = "a, b = map(int, input().split())\nprint(a + b)\n"


@pytest.fixture
def a_plus_b() -> dict[str, Any]:
    """A grade that is accepted, to be changed at one place by each test."""
    return {
        "problem": {"kind": "stdio", "tests": [{"input": "1 2\n", "output": "3\n"}]},
        "language": "python",
        "source": SUM,
    }


@pytest.fixture
def sleeper() -> dict[str, Any]:
    """A grade that runs for 20 s of wall time and hardly any of CPU time, unless it is cancelled."""
    return {
        "problem": {
            "kind": "stdio",
            "tests": [{"input": "", "output": ""}],
            "limits": {"cpu_s": 5.0, "wall_s": 20.0},
        },
        "language": "python",
        "source": "import time\ntime.sleep(20)\n",
    }
