"""A problem as it is evaluated: what it is to the grader, what its set knows of it, and what a model is asked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from rl_client.datasets.base import Entry
from rl_client.datasets.row import RowError
from rl_client.encoded import EncodedProblem
from rl_client.evaluate.settings import Manifest, Sampling
from rl_client.sendable import sendable


@dataclass(frozen=True, slots=True)
class Task:
    """One problem's."""

    id: str
    """Hash of what completions are asked for, and how: the same again need not be sampled again."""
    problem_id: str
    key: str
    """What its set calls it."""
    difficulty: str
    """The set's word for it; empty where it has none."""
    prompt: str
    """Empty where completions come from a file."""

    @staticmethod
    def of(entry: Entry, problem: EncodedProblem, manifest: Manifest) -> Task:
        """Raises RowError where a model is to be asked and nothing is known of what, and BadTemplate."""
        source = manifest.source
        prompt = ""
        if isinstance(source, Sampling):
            if entry.statement is None:
                raise RowError("unsupported", "the set has no statements")
            prompt = sendable(source.template.filled(entry.statement, manifest.language))
        key, difficulty = sendable(entry.key), entry.labels.get("difficulty")
        named = {
            "source": source.model_dump(mode="json"),
            "language": manifest.language,
            "problem": problem.id,
            "key": key,
            "prompt": prompt,
        }
        digest = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
        return Task(digest, problem.id, key, "" if difficulty is None else sendable(str(difficulty)), prompt)


def seed_of(run: str, task: Task, *numbers: int) -> int:
    """By hash of the run, the problem and what is numbered there, such as a chunk of samples: 31 bits."""
    text = json.dumps([run, task.problem_id, task.key, *numbers])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1
