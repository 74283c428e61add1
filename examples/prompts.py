#!/usr/bin/env python3
"""Prompts and labels for a trainer, out of a data set's rows and of the map that `rkgrade import` wrote of them.

    rkgrade import codecontests-plus rows.parquet --to http://grader:8000 --map map.jsonl
    examples/prompts.py rows.parquet map.jsonl --statement description > prompts.jsonl

Each line has `prompt` (the turns of a chat), `label` (the problem's id) and `datasource`, as OpenRLHF, TRL and
verifiers read them; `examples/verl/rows.py` makes rows for verl of them. With `--setting python` or `terminal` a model
is told of its tools, in the words of the calls that `rl_client.calls` reads: that is for OpenRLHF, since the others
tell of tools by the chat template.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import get_args

from rl_client.datasets.rows import read_rows
from rl_client.episodes import Name, Setting

ANSWER = "Write a {language} program that solves the problem: it reads stdin and writes stdout."
BLOCK = "Answer with the whole program in one code block."
#: One turn, without tools; the other settings are those of `rl_client.episodes`.
REASONING = "reasoning"


def told(setting: str, language: str) -> str:
    """What stands before each problem."""
    tools = () if setting == REASONING else Setting(setting).tools
    lines = [ANSWER.format(language=language)]
    lines += [
        f"You may call the tool {tool.name}: {tool.description} {tool.argument}: {tool.argument_description}"
        for tool in tools
    ]
    if tools:
        lines.append("A call looks like this, and its answer comes as the next turn:")
        first = tools[0]
        lines.append(
            f'<tool_call>\n{{"name": "{first.name}", "arguments": {{"{first.argument}": "..."}}}}\n</tool_call>'
        )
    lines.append("Submit the program's file when it is done." if setting == "terminal" else BLOCK)
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path, help="the rows, as they were imported")
    parser.add_argument("map", type=Path, help="what `rkgrade import --map` wrote")
    parser.add_argument("--statement", default="description", help="the column with the problem's words")
    parser.add_argument("--setting", choices=(REASONING, *get_args(Name)), default=REASONING)
    parser.add_argument("--language", default="Python")
    arguments = parser.parse_args()
    problems = {}
    for line in arguments.map.read_text().splitlines():
        row = json.loads(line)
        if Path(row["file"]).name == arguments.rows.name:
            problems[row["row"]] = row["problem_id"]
    written = 0
    for record in read_rows(arguments.rows, [arguments.statement]):
        if (problem := problems.get(record.number)) is None:
            continue
        statement = record.load().get(arguments.statement)
        if not isinstance(statement, str) or not statement.strip():
            print(f"prompts: row {record.number}: {arguments.statement}: no text", file=sys.stderr)
            continue
        turns = [
            {"role": "system", "content": told(arguments.setting, arguments.language)},
            {"role": "user", "content": statement.strip()},
        ]
        print(json.dumps({"prompt": turns, "label": problem, "datasource": arguments.rows.stem}))
        written += 1
    return 0 if written else f"prompts: none of {arguments.rows}'s rows is in {arguments.map}"  # type: ignore[return-value]


if __name__ == "__main__":
    # Quietly, where whoever reads has enough (`| head`).
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
