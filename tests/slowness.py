"""How many times longer than on a machine of its own whatever computes may take: bounds on times grow with it."""

from __future__ import annotations

import os

VARIABLE = "TESTS_SLOWNESS"

SLOWNESS = float(os.environ.get(VARIABLE, "1"))
