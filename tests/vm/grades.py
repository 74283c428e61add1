"""Requests that are graded on this host and in the machine: the answers must be the same."""

from __future__ import annotations

from typing import Any

import httpx

SUM = {
    "python": "print(sum(map(int, input().split())))",
    "cpp": "#include <iostream>\nint main() { long long a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }",
}
OFF_BY_ONE = "a, b = map(int, input().split())\nprint(a + b if a < 1000 else a - b)"
HOARDER = "x = b'x' * (200 * 2**20)\nprint(sum(map(int, input().split())))"
CPP_HOARDER = """\
#include <bits/stdc++.h>
int main() { std::vector<char> all; for (;;) all.resize(all.size() + (1 << 20), 'x'); }
"""
SPINNER = "import os\nos.fork()\nwhile True: pass"
SLEEPER = "import time\ntime.sleep(1000)"
BRANCHER = "import os, time\ntry:\n    while os.fork(): pass\n    time.sleep(1000)\nexcept OSError: print(8)"

PROBLEM = {
    "kind": "stdio",
    "tests": [{"input": "3 5\n", "output": "8\n"}, {"input": "1000000000 7\n", "output": "1000000007\n"}],
    "limits": {"cpu_s": 10.0, "wall_s": 60.0, "memory_mb": 64, "processes": 16},
}


def _request(language: str, source: str, **limits: float) -> dict[str, Any]:
    return {"problem": PROBLEM, "language": language, "source": source, "limits": limits}


REQUESTS = {
    "python, right": _request("python", SUM["python"]),
    "static C++, right": _request("cpp", SUM["cpp"]),
    "python, wrong": _request("python", OFF_BY_ONE),
    "python, too much memory": _request("python", HOARDER),
    "static C++, too much memory": _request("cpp", CPP_HOARDER),
    "python, too slow with a child": _request("python", SPINNER, cpu_s=0.5),
    "python, idle": _request("python", SLEEPER, wall_s=1.0),
    "python, as many processes as it gets": _request("python", BRANCHER),
}

SAID = ("verdict", "category", "rewards", "first_failure_length")


def grades(url: str) -> dict[str, Any]:
    """What a grader says of each request, figures apart."""
    said = {}
    for name, request in REQUESTS.items():
        answer = httpx.post(f"{url}/grade", json=request, timeout=120)
        assert answer.status_code == 200, answer.text
        result = answer.json()
        tests = [[test[key] for key in ("verdict", "exit_code", "signal")] for test in result["tests"]]
        said[name] = {**{key: result[key] for key in SAID}, "tests": tests, "secure": result["grader"]["secure"]}
    return said
