"""Run by an interpreter that has OpenRLHF: its own argument parser and its own checks of what came of it, up to where
the training would begin, which takes GPUs.

`openrlhf.cli.train_ppo_ray` cannot be imported without CUDA, so what it does as a program is taken out of its source,
as it stands, without the imports that only the training needs. Prints what it would train with, as JSON.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

package = importlib.util.find_spec("openrlhf")
assert package is not None
assert package.submodule_search_locations is not None
source = Path(package.submodule_search_locations[0]) / "cli" / "train_ppo_ray.py"
tree = ast.parse(source.read_text())
kept: list[ast.stmt] = [
    node for node in tree.body if isinstance(node, ast.If) or (isinstance(node, (ast.Import, ast.ImportFrom)) and
    ast.unparse(node) in ("import argparse", "import os", "from datetime import datetime"))
]  # fmt: skip
given: list[Any] = []
exec(compile(ast.Module(kept, []), str(source), "exec"), {"__name__": "__main__", "train": given.append})


def plain(value: Any) -> Any:
    if isinstance(value, SimpleNamespace):
        return {name: plain(one) for name, one in vars(value).items()}
    return value


variables = {name: value for name, value in os.environ.items() if name.startswith("RKGRADE_")}
print(json.dumps({"arguments": plain(given[0]), "variables": variables}), file=sys.stdout)
