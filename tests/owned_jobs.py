"""Whose a job is where clients have tokens: the same on every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

TOKENS = {"lab": "lab-0123456789abcdef-0", "class": "class-0123456789abcdef"}


def named_tokens(directory: Path) -> Path:
    """A file of the tokens of two clients."""
    file = directory / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()))
    return file


def assert_only_the_owner_finds_a_job(url: str, grade: dict[str, Any]) -> None:
    """A job of one client, at a service with `named_tokens`: for another who knows its id there is none."""
    lab, other = ({"Authorization": f"Bearer {token}"} for token in TOKENS.values())
    keyed = {"Idempotency-Key": "rollout-17"}
    identifier = httpx.post(f"{url}/jobs", json=grade, headers=lab | keyed).json()["id"]
    job = f"{url}/jobs/{identifier}"
    # What a client calls itself does not make it another.
    for headers in (other, other | {"X-Client-Id": "lab"}):
        assert httpx.get(job, headers=headers).status_code == 404
        assert httpx.delete(job, headers=headers).status_code == 404
    same_key = httpx.post(f"{url}/jobs", json=grade, headers=other | keyed).json()["id"]
    assert same_key != identifier
    assert httpx.get(job, headers=lab).status_code == 200
    assert httpx.delete(job, headers=lab).status_code == 204
    assert httpx.get(job, headers=lab).status_code == 404
