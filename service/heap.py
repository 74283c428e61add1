"""What a process that has started does about its heap."""

from __future__ import annotations

import gc


def settle() -> None:
    """Leave what is there by now out of all further collections.

    The oldest generation is collected once what came since is a quarter of what is in it: with the modules and tables
    of a service in there, after thousands of grades, whose cycles (of exceptions and their frames) pile up until then.
    What is left is soon collected, and looked through in less time.
    """
    gc.collect()
    gc.freeze()
    # What is in the oldest generation is counted when that is collected, and at no other time.
    gc.collect()
