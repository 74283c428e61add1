"""Where a grader is: its address, which is looked at before anything is sent there.

An address that can never be reached would look like a grader that is down, and be asked again for all patience.
"""

from __future__ import annotations

import httpx


def checked(url: str, name: str = "url") -> str:
    """The address, without slashes at its end. Raises ValueError, which begins with `name`, of what is none."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{name} is {url!r}, which is no address: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host or not 0 < (parsed.port or 80) < 2**16 or " " in url:
        raise ValueError(f"{name} is {url!r}, and an address is written as http://grader:8000")
    if "?" in url or "#" in url:
        raise ValueError(f"{name} is {url!r}: paths are put behind an address, so nothing with ? or # may stand there")
    return url.rstrip("/")
