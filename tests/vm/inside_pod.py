"""Run in a pod in the machine: a host is prepared and programs are judged there; says on stdout what they came to."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sandbox import doctor, host
from sandbox.checkers import Tokens
from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.problem import Limits, Problem, Submission, Test
from sandbox.stdin import Stdin
from tests.vm.grades import HOARDER, SPINNER, SUM

#: With seconds of CPU time, of which everything takes far more in the machine.
PROGRAMS = {"right": (SUM["python"], 10.0), "too much memory": (HOARDER, 60.0), "too slow with a child": (SPINNER, 1.0)}


def main(data_dir: str, uid_base: str) -> None:
    config = SandboxConfig(Path(data_dir), uid_base=int(uid_base), languages=frozenset({"python"}))
    said: dict[str, str] = {"host": host.prepare(config).sandbox}
    said |= {one.name: one.status for one in (doctor.rights(), doctor.user_namespaces(), doctor.control_groups())}
    problem = Problem((Test(0, "a", 4, Stdin(b"3 5\n"), b"8\n"),), Tokens())
    judge = Judge(config, slot=0, core=None)
    try:
        for name, (source, cpu_s) in PROGRAMS.items():
            limits = Limits(cpu_s=cpu_s, wall_s=120.0, memory_bytes=64 * 2**20)
            [result] = judge.judge(Submission(problem, "python", source.encode(), limits)).tests
            said[name] = result.verdict + (f": {result.message}" if result.message else "")
    finally:
        judge.close()
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
