"""What tests of evaluating share: a server of OpenAI's API that answers from a table, problems, and the command."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from rl_client.cli import build
from rl_client.evaluate.report import Report
from tests.rl_client.answering import Asked

RIGHT = "Twice.\n```python\nprint(2 * int(input()))\n```"
WRONG = "```python\nprint(2)\n```"
#: Right, and too slow for what is longer than a digit.
SLOW = "```python\nn = int(input())\nwhile n > 9: pass\nprint(2 * n)\n```"
NONE = "I do not know."


def row(key: str, difficulty: str, factor: int = 2) -> dict[str, Any]:
    """A problem whose statement is its key: one test of one digit, and one of eleven bytes."""
    tests = [{"input": f"{n}\n", "output": f"{factor * n}\n"} for n in (1, 1234567890)]
    problem = {"kind": "stdio", "tests": tests, "limits": {"cpu_s": 0.3}}
    return {"key": key, "statement": key, "difficulty": difficulty, "problem": problem}


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


Turns = Callable[[dict[str, Any]], str]
"""The answer to a request."""


@dataclass
class Model:
    """Answers each problem's samples from its list, the first sample of a request with the list's first."""

    table: Mapping[str, Sequence[str] | Turns]
    name: str = "m"
    most: int = 1000
    """Samples that it gives to one request, however many are asked for."""
    refuses: Mapping[str, tuple[int, object]] = field(default_factory=dict)
    """Problems that it answers an error to."""
    before: Callable[[int], None] = lambda count: None
    """Called with the number of the request, before it is answered."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, one: Asked) -> tuple[int, dict[str, str], object]:
        if one.path == "/v1/models":
            return 200, {}, {"data": [{"id": self.name}]}
        body = json.loads(one.body)
        with self.lock:
            self.asked.append(body)
            count = len(self.asked)
        self.before(count)
        chat = one.path == "/v1/chat/completions"
        prompt = next(m["content"] for m in body["messages"] if m["role"] == "user") if chat else body["prompt"]
        key = next(key for key in self.table if key in prompt)
        if key in self.refuses:
            status, content = self.refuses[key]
            return status, {}, content
        answers = self.table[key]
        samples = min(body["n"], self.most)
        texts = [answers(body) if callable(answers) else answers[i % len(answers)] for i in range(samples)]
        choices = [
            {"index": i, "finish_reason": "stop"}
            | ({"message": {"role": "assistant", "content": text}} if chat else {"text": text})
            for i, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 10, "completion_tokens": 5 * samples}
        # Servers need not keep their order.
        return 200, {}, {"choices": choices[::-1], "usage": usage}

    def asked_for(self) -> Counter[str]:
        """Samples by problem."""
        found: Counter[str] = Counter()
        for body in self.asked:
            text = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
            found[next(key for key in self.table if key in text)] += body["n"]
        return found


def rkgrade(*arguments: object) -> Result:
    done = CliRunner().invoke(build("evaluate"), ["evaluate", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def report(out: Path) -> Report:
    return Report.model_validate_json((out / "report.json").read_bytes())
