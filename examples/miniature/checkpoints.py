"""Where training that was ended goes on from. It knows of no trainer but how it lays out its folder."""

from __future__ import annotations

import json
from pathlib import Path


def last_checkpoint(training: Path) -> str | None:
    """The last one that a trainer has written whole: its state comes last, and may be cut off itself."""
    states = filter(_is_json, training.glob("checkpoint-*/trainer_state.json"))
    folders = sorted((one.parent for one in states), key=lambda folder: int(folder.name.rpartition("-")[2]))
    return str(folders[-1]) if folders else None


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_bytes())
    except ValueError:
        return False
    return True
