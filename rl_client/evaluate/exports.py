"""Programs as other tools take them, to be graded there, too.

`livecodebench`: what `python -m lcb_runner.runner.custom_evaluator --custom_output_file` reads: a JSON list of
`question_id` and `code_list`, which must name all problems of the release.
`evalplus`: what `evalplus.evaluate --samples` reads: JSON lines of `task_id` and `solution`, of all problems of a set.
Rows of MBPP+ have numbers: what is 2 there is `Mbpp/2` to EvalPlus itself.

An answer without a program is an empty one there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from rl_client.datasets.outputs import Output
from rl_client.evaluate.tasks import Task

Programs = Iterable[tuple[Task, Sequence[str]]]
"""Of each problem all of its samples' programs, in order."""


def write_livecodebench(path: Path, programs: Programs) -> None:
    """Raises DatasetError."""
    rows = [{"question_id": task.key, "code_list": list(sources)} for task, sources in programs]
    with Output(path) as output:
        output.write_line(json.dumps(sorted(rows, key=lambda row: str(row["question_id"]))).encode())


def write_evalplus(path: Path, programs: Programs) -> None:
    """Raises DatasetError."""
    with Output(path) as output:
        for task, sources in programs:
            for source in sources:
                name = f"Mbpp/{task.key}" if task.key.isdecimal() else task.key
                output.write_line(json.dumps({"task_id": name, "solution": source}).encode())
