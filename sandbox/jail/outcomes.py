"""What ends a test other than by an exception of its own, as pytest's outcomes do."""

from __future__ import annotations


class NotCovered(BaseException):
    """What a suite needs and does not get here. No `except Exception` is to swallow it."""


class Skipped(BaseException):
    """A test asks not to be run."""


class Failed(BaseException):
    """A test says that it has failed. As in pytest, no `except Exception` of its own is to swallow it."""
