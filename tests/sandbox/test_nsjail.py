"""The folders that jails are mounted on, in a /tmp that every user of the host can write."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Imports before it mounts, as the project itself may lie in /tmp.
HOLD = """
import os, subprocess, sys
from sandbox import nsjail
subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/tmp"], check=True)
subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c", sys.argv[1]], check=True, cwd="/")
try:
    nsjail.hold_mount_points()
except OSError as error:
    print(error)
else:
    for name in sorted(os.listdir("/tmp")):
        found = os.lstat(f"/tmp/{name}")
        print(name, oct(found.st_mode), found.st_uid)
"""

HELD = ["nsjail.0.root 0o40755 0", "nsjail.0.tmp 0o40755 0"]


def held(before: str) -> list[str]:
    """What comes of the folders in a new /tmp, after a shell command of a user who owns nothing."""
    command = ["unshare", "-m", sys.executable, "-c", HOLD, before]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


@pytest.mark.jail
@pytest.mark.parametrize("before", ["true", "umask 022; mkdir /tmp/nsjail.0.root /tmp/nsjail.0.tmp"])
def test_the_folders_are_roots_own_whoever_made_them(before: str) -> None:
    assert held(before) == HELD


@pytest.mark.jail
@pytest.mark.parametrize(
    "before",
    [
        "touch /tmp/nsjail.0.root",
        "mkfifo /tmp/nsjail.0.root",
        "ln -s /etc /tmp/nsjail.0.root",
        "ln -s nowhere /tmp/nsjail.0.root",
    ],
)
def test_what_is_no_folder_is_refused_by_name(before: str) -> None:
    said = "jails need a folder there: remove what is in its place: '/tmp/nsjail.0.root'"
    assert held(before) == [f"[Errno 20] {said}"]


@pytest.mark.jail
@pytest.mark.parametrize("raised", [[], ["choom", "-n", "900", "--"]])
def test_jails_are_taken_before_the_grader_however_likely_that_is_itself(raised: list[str]) -> None:
    code = """
import subprocess
from sandbox import nsjail
command = nsjail.command(["true"], host_uid=70000, pass_fd=0, scratch_bytes=2**20, mounts=())
for first in [], command[: command.index(nsjail.binary())]:
    subprocess.run([*first, "cat", "/proc/self/oom_score_adj"], check=True)
"""
    command = [*raised, sys.executable, "-c", code]
    own, jails = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert int(jails) == max(int(own), 500)
