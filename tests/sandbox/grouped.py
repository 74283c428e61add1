"""Real processes in control groups, without cells: Python code that runs once its process has entered a group."""

from __future__ import annotations

import subprocess

#: Enters the groups by the descriptors in its first argument, then runs its second.
ENTER = "import os, sys\nfor fd in sys.argv[1].split(','): os.write(int(fd), b'0')\nexec(sys.argv[2])"


def start(entries: list[int], code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["/usr/bin/python3", "-I", "-S", "-c", ENTER, ",".join(map(str, entries)), code],
        pass_fds=entries,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(entries: list[int], code: str) -> tuple[int, str]:
    """Exit status and output of a process in these groups."""
    with start(entries, code) as process:
        output, _ = process.communicate(timeout=60)
        return process.returncode, output.strip()
