"""From folders to a plan: reads what is there, holds it against each other, opens its files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rl_client.merge.adapters import Added, compare_adapters, read_adapter
from rl_client.merge.checkpoint import read_checkpoint
from rl_client.merge.plan import Plan
from rl_client.merge.preflight import compare
from rl_client.merge.recipes import Recipe
from rl_client.merge.sources import Source, Stored


@contextmanager
def opened(
    paths: Sequence[Path],
    base: Path | None,
    recipes: Sequence[Recipe],
    out: Path,
    allowed: Collection[str] = (),
    *,
    takes_not_finite: bool = False,
) -> Iterator[Plan]:
    """A plan whose files are open meanwhile. `paths`: checkpoints, or with `base` adapters. Raises MergeError."""
    with ExitStack() as stack:
        if base is None:
            checkpoints = [read_checkpoint(path) for path in paths]
            left_out = compare(checkpoints, allowed)
            inputs: list[Source] = [stack.enter_context(Stored(one)) for one in checkpoints]
            yield Plan(checkpoints[-1], None, inputs, recipes, left_out, out, takes_not_finite)
        else:
            template = read_checkpoint(base)
            adapters = [read_adapter(path) for path in paths]
            left_out = compare([template], allowed)
            kept = {name: tensor for name, tensor in template.tensors.items() if name not in left_out}
            compare_adapters(adapters, kept, allowed)
            stored = stack.enter_context(Stored(template))
            yield Plan(template, stored, [Added(one) for one in adapters], recipes, left_out, out, takes_not_finite)
