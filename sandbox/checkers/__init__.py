"""Checkers: what decides on the output of a run that ended cleanly. A new one is one class here."""

from sandbox.checkers.base import Checker, CheckerOutcome
from sandbox.checkers.compare import Exact, Lcb, Lines, Tokens

__all__ = ["Checker", "CheckerOutcome", "Exact", "Lcb", "Lines", "Tokens"]
