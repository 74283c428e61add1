"""How a test script's process ends, as `sandbox.jail.tester` tells it and `sandbox.scripts` reads it: exit statuses."""

PASSED = 0
FAILED = 33
RAISED = 34
"""An exception of the program's came through to the script's top."""
LOST = 35
"""The program has gone."""
OUTSIDE = 36
"""It answered outside the protocol."""
FLOOD = 37
"""It sent more than `MAX_BYTES`."""
MISSING = 38
"""It lacks what the script names."""
BROKEN = 39
"""The script itself is at fault."""

#: The file that the script is said to be.
SCRIPT_NAME = "test.py"

#: What the program may send in all.
MAX_BYTES = 64 * 2**20
