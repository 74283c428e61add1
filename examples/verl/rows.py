"""Rows for verl out of problems that a grader has: JSON lines in, parquet out (`pip install pyarrow`).

    rkgrade import apps train.jsonl --to http://grader:8000 --map map.jsonl
    ... join the map with the texts of the problems: {"prompt": "...", "problem": "sha256:..."} a line
    python rows.py rows.jsonl train.parquet --source apps --tool

`ground_truth` is the row's label: the id of its problem, or with `label` in place of `problem` all that one may say.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pyarrow
from pyarrow import parquet

SAY = "Write a Python program that reads stdin and writes stdout. End your answer with it, in a ```python block."


def row(index: int, line: dict[str, object], source: str, *, has_tool: bool) -> dict[str, object]:
    label = line.get("label", line.get("problem"))
    return {
        "data_source": source,
        "prompt": [{"role": "system", "content": SAY}, {"role": "user", "content": line["prompt"]}],
        "reward_model": {"style": "rule", "ground_truth": label if isinstance(label, str) else json.dumps(label)},
        "extra_info": {"index": index},
        "agent_name": "tool_agent" if has_tool else "single_turn_agent",
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("lines", type=Path)
    options.add_argument("to", type=Path)
    options.add_argument("--source", default="rkgrade", help="what verl's validation metrics are named by")
    options.add_argument("--tool", action="store_true", help="let the model call Python")
    given = options.parse_args()
    lines = [json.loads(line) for line in given.lines.read_text().splitlines()]
    rows = [row(index, line, given.source, has_tool=given.tool) for index, line in enumerate(lines)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), given.to)


if __name__ == "__main__":
    main()
