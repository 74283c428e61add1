"""How many files this process may open."""

from __future__ import annotations

import resource

#: From here on more would be of no use.
MOST_DESCRIPTORS = 65_536


def raise_descriptor_limit() -> int:
    """Let this process open as many files as it may; how many, as far as they are of use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
