"""From folders to a plan: reads what is there, holds it against each other, opens its files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rl_client.merge.adapters import Added, compare_adapters, read_adapter
from rl_client.merge.checkpoint import Checkpoint, read_checkpoint
from rl_client.merge.plan import Plan, Stamps, check_unchanged, stamps_of
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
    folders = [*paths, *([] if base is None else [base])]
    stamps = stamps_of(one for path in folders if path.is_dir() for one in path.iterdir() if one.is_file())
    with ExitStack() as stack:
        if base is None:
            checkpoints = [read_checkpoint(path) for path in paths]
            left_out = compare(checkpoints, allowed)
            inputs: list[Source] = [stack.enter_context(Stored(one)) for one in checkpoints]
            read = _of_what_is_read(stamps, inputs, checkpoints[-1])
            yield Plan(checkpoints[-1], None, inputs, recipes, left_out, out, read, takes_not_finite)
        else:
            template = read_checkpoint(base)
            adapters = [read_adapter(path) for path in paths]
            left_out = compare([template], allowed)
            kept = {name: tensor for name, tensor in template.tensors.items() if name not in left_out}
            compare_adapters(adapters, kept, allowed)
            stored = stack.enter_context(Stored(template))
            added = [Added(one) for one in adapters]
            read = _of_what_is_read(stamps, [stored, *added], template)
            yield Plan(template, stored, added, recipes, left_out, out, read, takes_not_finite)


def _of_what_is_read(stamps: Stamps, sources: Sequence[Source], template: Checkpoint) -> Stamps:
    """Raises BadCheckpoint where a file is there that was not."""
    paths = [*(path for source in sources for path in source.files), *template.companions]
    check_unchanged({path: stamps.get(path) for path in paths})
    return {path: stamps[path] for path in paths}
