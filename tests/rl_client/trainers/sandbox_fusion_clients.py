"""Run by an interpreter that has verl and `sandbox-fusion`: both ask a grader for what SandboxFusion would run.

Reads the grader's address on stdin, and prints what each made of its answers.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from typing import Any

import sandbox_fusion
from sandbox_fusion import CommandRunStatus, RunCodeRequest, RunStatus, SummaryMapping
from verl.utils.reward_score import default_compute_score
from verl.utils.reward_score.sandbox_fusion.utils import check_correctness

CASES = {"inputs": ["1\n", "20\n", "300\n", "4\n"], "outputs": ["2\n", "40\n", "600\n", "8\n"]}

PROGRAMS = {
    "right": "print(2 * int(input()))",
    "half right": "x = input()\nprint(2 * int(x) if len(x) < 2 else 0)",
    "no program": "print(",
    "too slow": "import time\ntime.sleep(3 * (len(input()) - 1))\nprint(2)",
    "raises": "raise ValueError",
}


def verls(url: str) -> dict[str, Any]:
    """What verl's own reward code says of the programs: scores from 0 to 1, and results by test."""
    score = {
        name: default_compute_score(
            "codecontests", f"```python\n{code}\n```", json.dumps(CASES), sandbox_fusion_url=url, memory_limit_mb=256
        )
        for name, code in PROGRAMS.items()
    }
    by_test = {name: check_correctness(url, CASES, code, timeout=2)[0] for name, code in PROGRAMS.items()}
    cpp = "#include <iostream>\nint main() { int x; std::cin >> x; std::cout << 2 * x; }"
    by_test["c++"] = check_correctness(url, CASES, cpp, language="cpp")[0]
    by_test["no c++"] = check_correctness(url, CASES, "int main() {", language="cpp")[0]
    function = {"inputs": ["[1, 2]\n3", "[]\n0"], "outputs": ["[4, 5]", "[]"], "fn_name": "added"}
    code = "class Solution:\n    def added(self, xs, y):\n        return [x + y for x in xs]"
    by_test["function"] = check_correctness(url, function, code)[0]
    asserted = {"inputs": ["", ""], "outputs": [None, None], "assert_case": ["assert f(1) == 2", "assert f(1) == 3"]}
    by_test["asserts"] = check_correctness(url, asserted, "def f(x): return x + 1")[0]
    return {"score": score, "by_test": by_test}


def clients(url: str) -> dict[str, Any]:
    """What its own client says."""
    sandbox_fusion.set_endpoint(url)
    files = {"in.txt": base64.b64encode(b"\x00in").decode()}
    code = "open('out.bin', 'wb').write(open('in.txt', 'rb').read()[::-1])\nprint(input())"
    request = RunCodeRequest(code=code, language="python", stdin="said", files=files, fetch_files=["out.bin", "in.txt"])
    ran = sandbox_fusion.run_code(request)
    assert (ran.status, ran.run_result.status, ran.run_result.return_code) == (
        RunStatus.Success, CommandRunStatus.Finished, 0,
    ), ran  # fmt: skip
    mapping = SummaryMapping(
        Success="success", Failed="failed", CompileFailed="no program", RunFailed="raised", RunTimeout="too slow"
    )
    asked = {
        "success": ("python", "print(1)"),
        "raised": ("python", "raise SystemExit(2)"),
        "too slow": ("cpp", "int main() { for (;;); }"),
        "no program": ("cpp", "int main() { return x; }"),
    }

    async def at_once() -> list[Any]:
        return await asyncio.gather(
            *(
                sandbox_fusion.run_code_async(RunCodeRequest(code=code, language=language, run_timeout=1.0))
                for language, code in asked.values()
            )
        )

    told = [sandbox_fusion.summary_run_code_result(one, mapping) for one in asyncio.run(at_once())]
    return {
        "stdout": ran.run_result.stdout,
        "files": {name: base64.b64decode(data).decode("latin-1") for name, data in ran.files.items()},
        "asked": list(asked),
        "told": told,
    }


if __name__ == "__main__":
    url = sys.stdin.read().strip()
    print(json.dumps({"verl": verls(f"{url}/run_code"), "client": clients(url)}))
