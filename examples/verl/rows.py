"""Rows for verl out of prompts and labels: the lines of `examples/prompts.py` in, parquet out (`pip install pyarrow`).

    examples/prompts.py rows.parquet map.jsonl > prompts.jsonl
    python examples/verl/rows.py prompts.jsonl train.parquet --tool

verl names what it validates by `datasource`. A label may be more than a problem's id (docs/trainers.md).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet


def row(index: int, line: dict[str, Any], *, has_tool: bool) -> dict[str, object]:
    label = line["label"]
    return {
        "data_source": line.get("datasource", "rkgrade"),
        "prompt": line["prompt"],
        "reward_model": {"style": "rule", "ground_truth": label if isinstance(label, str) else json.dumps(label)},
        "extra_info": {"index": index},
        "agent_name": "tool_agent" if has_tool else "single_turn_agent",
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("lines", type=Path)
    options.add_argument("to", type=Path)
    options.add_argument("--tool", action="store_true", help="let the model call Python")
    given = options.parse_args()
    lines = [json.loads(line) for line in given.lines.read_text().splitlines()]
    rows = [row(index, line, has_tool=given.tool) for index, line in enumerate(lines)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), given.to)


if __name__ == "__main__":
    main()
