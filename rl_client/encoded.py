"""A problem as the grader stores it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from service.contract import Problem, canonical_chunks


@dataclass(frozen=True, slots=True)
class EncodedProblem:
    """Canonical JSON, and its hash."""

    id: str
    content: bytes

    @classmethod
    def of(cls, problem: Problem) -> EncodedProblem:
        """Raises RecursionError where arguments of calls are nested too deeply."""
        content = b"".join(canonical_chunks(problem))
        return cls(f"sha256:{hashlib.sha256(content).hexdigest()}", content)
