"""What a tool call costs: `POST /run` of a trivial Python program, and a command in a session.

    python bench/run_calls.py [--quick] [--json FILE]

Starts `rkgrade serve` on a free loopback port with a temporary data directory. One client with one connection:

1. calls with a pause after each, so that each finds the cell that was started meanwhile, as where there are more
   workers than calls at once;
2. calls one after the other without a pause, where a call may wait for its cell.

In turn with the same program in a fresh interpreter without any sandbox. Then sessions: opening and closing them, and
commands in one, in turn with the same command by `sh -c` without any sandbox.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import Cell, Report, options, percentile
from server import Server, ServerFailed, serving

from sandbox import languages

PAUSE_S = 0.1

PROGRAMS: dict[str, tuple[dict[str, Any], str]] = {
    "print": ({"source": "print(6 * 7)\n"}, "42\n"),
    "stdin and a file": (
        {
            "source": "print(input(), open('a.txt').read())\nopen('b.txt', 'w').write('left')\n",
            "stdin": "one\n",
            "files": {"a.txt": {"text": "two"}},
        },
        "one two\n",
    ),
    "import json, re, collections": ({"source": "import json, re, collections\nprint(json.dumps([1]))\n"}, "[1]\n"),
}


def bare_ms(source: str, directory: Path) -> float:
    """The program in an interpreter of its own, no sandbox, no service."""
    (directory / "main.py").write_text(source)
    (directory / "a.txt").write_text("two")
    begun = time.perf_counter()
    subprocess.run([languages.PYTHON, "main.py"], cwd=directory, input=b"one\n", capture_output=True, check=True)
    return (time.perf_counter() - begun) * 1e3


def measure(report: Report, server: Server, directory: Path, count: int, pause_s: float, title: str) -> None:
    rows: list[list[Cell]] = []
    with server.connect() as client:
        for name, (request, expected) in PROGRAMS.items():
            body = json.dumps({"language": "python", **request}).encode()
            calls, own, bare = [], [], []
            for number in range(count + 5):
                time.sleep(pause_s)
                begun = time.perf_counter()
                status, answer = client.ask("POST", "/run", body)
                took_ms = (time.perf_counter() - begun) * 1e3
                result = json.loads(answer)
                if status != 200 or result["status"] != "ok" or result["stdout"] != expected:
                    raise ServerFailed(f"{name}: {status} {answer[:500]!r}")
                time.sleep(pause_s)
                alone_ms = bare_ms(str(request["source"]), directory)
                if number >= 5:
                    calls.append(took_ms)
                    own.append(took_ms - result["timing"]["run_s"] * 1e3)
                    bare.append(alone_ms)
            row: list[Cell] = [name]
            for values in (calls, own, bare):
                row += [percentile(values, 0.5), percentile(values, 0.99)]
            rows.append(row)
            if pause_s and name == "print":
                report.goal("POST /run of a trivial Python program, p50", percentile(calls, 0.5), 12.0, " ms")
    report.table(title, ("ms", "p50", "p99", "but for the judge p50", "p99", "bare python3 p50", "p99"), rows)


def sessions(report: Report, server: Server, count: int) -> None:
    opened, closed, commands, bare = [], [], [], []
    with server.connect() as client:
        for number in range(count + 5):
            begun = time.perf_counter()
            status, answer = client.ask("POST", "/sessions", b"{}")
            opened_s = time.perf_counter()
            if status != 201:
                raise ServerFailed(f"POST /sessions: {status} {answer[:500]!r}")
            path = f"/sessions/{json.loads(answer)['id']}"
            for _ in range(3):
                asked_s = time.perf_counter()
                status, answer = client.ask("POST", f"{path}/exec", b'{"command": "true"}')
                if json.loads(answer).get("exit_code") != 0:
                    raise ServerFailed(f"exec: {status} {answer[:500]!r}")
                commands.append((time.perf_counter() - asked_s) * 1e3)
                asked_s = time.perf_counter()
                subprocess.run(["/bin/sh", "-c", "true"], capture_output=True, check=True)
                bare.append((time.perf_counter() - asked_s) * 1e3)
            ending_s = time.perf_counter()
            client.ask("DELETE", path)
            if number >= 5:
                opened.append((opened_s - begun) * 1e3)
                closed.append((time.perf_counter() - ending_s) * 1e3)
    rows: list[list[Cell]] = [
        [name, percentile(values, 0.5), percentile(values, 0.99)]
        for name, values in (
            ("POST /sessions", opened),
            ("exec of true", commands),
            ("sh -c true, bare", bare),
            ("DELETE /sessions/{id}", closed),
        )
    ]
    report.table(f"{count} sessions, one after the other", ("ms", "p50", "p99"), rows)
    report.goal("exec of `true` in a session, p50", percentile(commands, 0.5), 10.0, " ms")


def main() -> None:
    given = options(__doc__)
    report = Report("run_calls", given.quick)
    count = 20 if given.quick else 300
    workers = str(len(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory(prefix="rkgrade-bench-") as name:
        directory = Path(name)
        with serving(directory, "--workers", workers, "--languages", "python") as server:
            own = directory / "bare"
            own.mkdir()
            measure(report, server, own, count, PAUSE_S, f"{count} calls, warm cell")
            measure(report, server, own, count, 0.0, f"{count} calls, one after the other")
            sessions(report, server, count // 5)
    report.emit(given.json)


if __name__ == "__main__":
    main()
