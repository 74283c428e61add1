"""What lies on a cell's disks: put there, opened, listed and removed, by names that may be the program's choice.

Files of the program's own are opened with its rights (`warden.Warden.as_program`), for it could else have the warden
open what it may not, and never through a link, which could lead to what only the warden may read. What is handed out
are descriptors: names are bytes of the program's own, and say nothing of what they stand for.

Runs in the jail, as the warden does: standard library only, the leanest.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False  # As in `typing`, whose import would cost every cell more than all of ours together.
if TYPE_CHECKING:
    from sandbox.jail import wire
else:
    import wire

SCRATCH = (wire.BOX, "/tmp")
COPY_BYTES = 1 << 20

#: How much of a message their names may take.
MOST_NAMES_BYTES = 48 * 1024

#: Of what a run has left: how long a path may be to be handed out, or looked into, how deep it may lead, and how many
#: entries are looked at.
MOST_PATH_BYTES = 255
MOST_LEVELS = 16
MOST_LOOKED_AT = 2048

#: Waits for nobody, and follows no link.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}


def load(directory: str, files: list[tuple[str, int]], fds: list[int]) -> None:
    """Write new files, and the folders that their names lead through."""
    for (name, mode), source in zip(files, fds, strict=True):
        path = f"{directory}/{name}"
        if "/" in name:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        while os.sendfile(target, source, None, COPY_BYTES):
            pass
        os.close(target)


def opened(names: list[str]) -> tuple[list[str], list[int]]:
    """Open the files that a run was to produce, for "name/" all in that folder; what is missing, or no plain file, is
    left out.
    """
    found: list[str] = []
    fds: list[int] = []
    for name in listed(names):
        fd = open_plain(name)
        if fd is not None:
            found.append(name)
            fds.append(fd)
    return found, fds


def listed(names: list[str]) -> list[str]:
    """The names, each folder replaced by what is in it; no more than fit into a message."""
    files = []
    for name in names:
        if not name.endswith("/"):
            files.append(name)
            continue
        try:
            folder = open_inside(name[:-1])
        except OSError:
            continue
        try:
            files += [name + inner for inner in sorted(os.listdir(folder))]
        except NotADirectoryError:
            pass
        finally:
            os.close(folder)
    room = MOST_NAMES_BYTES
    fitting = []
    for name in files[: wire.MOST_FILES]:
        room -= len(wire.json_text(name))
        if room < 0:
            break
        fitting.append(name)
    return fitting


def left(most: int) -> tuple[list[str], list[int], int]:
    """Open what a run has left in its directory, folder by folder in the order of names.

    Returns the names, each byte as the character of that number, the descriptors, and how many entries beside folders
    are not among them: beyond the bounds, no plain file, or closed to the program itself.
    """
    names: list[str] = []
    fds: list[int] = []
    left_out = looked_at = 0
    room = MOST_NAMES_BYTES
    waiting = sorted(os.listdir(wire.BOX), reverse=True)
    while waiting:
        name = waiting.pop()
        looked_at += 1
        told = os.fsencode(name).decode("latin-1")
        if (
            len(fds) == most
            or looked_at > MOST_LOOKED_AT
            or len(told) > MOST_PATH_BYTES
            or told.count("/") >= MOST_LEVELS
            or len(wire.json_text(told)) > room
        ):
            left_out += 1
            continue
        try:
            fd = open_inside(name)
        except OSError:
            left_out += 1
            continue
        kind = os.fstat(fd).st_mode
        if stat.S_ISREG(kind):
            names.append(told)
            fds.append(fd)
            room -= len(wire.json_text(told))
            continue
        if stat.S_ISDIR(kind):
            waiting += sorted((f"{name}/{inner}" for inner in os.listdir(fd)), reverse=True)
        else:
            left_out += 1
        os.close(fd)
    return names, fds, left_out


def open_inside(path: str) -> int:
    """Open a file or folder below the program's directory: no part of its path may be a link, which could lead to what
    only the warden may read.
    """
    at = folder_of(path)
    try:
        return os.open(path.rpartition("/")[2], READ, dir_fd=at)
    finally:
        os.close(at)


def folder_of(path: str, *, make: bool = False) -> int:
    """The folder that a path leads to the last part of; with `make`, folders that are not there are made."""
    at = os.open(wire.BOX, os.O_PATH | os.O_CLOEXEC)
    for folder in path.split("/")[:-1]:
        try:
            if make:
                try:
                    os.mkdir(folder, 0o755, dir_fd=at)
                except FileExistsError:
                    pass
            inner = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    return at


def open_plain(name: str) -> int | None:
    """A file of the program's; None where there is none of that name that it could read, or no plain one."""
    try:
        fd = open_inside(name)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def scratch_is_empty() -> bool:
    return not any(os.listdir(directory) for directory in SCRATCH)


def empty(directory: str) -> None:
    """Remove everything in a directory, however deep, without recursion.

    Directories found inside others are first moved to the top, so that no path grows long and no more than one level
    is open at a time; under names that nobody can have taken, since they were not there to be known.
    """
    waiting = [f"{directory}/{name}" for name in os.listdir(directory)]
    prefix = f"{directory}/.{os.urandom(16).hex()}-"
    count = 0
    while waiting:
        path = waiting.pop()
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            continue
        os.chmod(path, 0o700)
        for name in os.listdir(path):
            inner = f"{path}/{name}"
            if stat.S_ISDIR(os.lstat(inner).st_mode):
                # A directory is renamed by writing its "..": it must be open to its owner.
                os.chmod(inner, 0o700)
                count += 1
                moved = f"{prefix}{count}"
                os.rename(inner, moved)
                waiting.append(moved)
            else:
                os.unlink(inner)
        os.rmdir(path)


# -- of a session, whose processes are alive meanwhile


def write(path: str, source: int) -> None:
    """Make or replace a plain file, and the folders before it."""
    at = folder_of(path, make=True)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        target = os.open(path.rpartition("/")[2], flags, 0o644, dir_fd=at)
    finally:
        os.close(at)
    try:
        if not stat.S_ISREG(os.fstat(target).st_mode):
            raise FileExistsError(errno.EEXIST, "no plain file")
        os.ftruncate(target, 0)
        while os.sendfile(target, source, None, COPY_BYTES):
            pass
    finally:
        os.close(target)


def open_any(path: str) -> int:
    """A plain file, open to be read."""
    fd = open_inside(path)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        os.close(fd)
        raise OSError(errno.EISDIR if is_folder else errno.EINVAL, "no plain file")
    return fd


def list_into(path: str, target: int) -> bool:
    """Write what is in a folder to a file: for each entry its kind, its size and its name, ended by NUL; whether there
    is more than that.
    """
    fd = open_inside(path) if path else os.open(wire.BOX, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        names = sorted(os.listdir(fd))
        for name in names[:MOST_LOOKED_AT]:
            try:
                found = os.lstat(name, dir_fd=fd)
            except FileNotFoundError:
                continue
            kind = KINDS.get(stat.S_IFMT(found.st_mode), "other")
            os.write(target, b"%s %d %s\0" % (kind.encode(), found.st_size, os.fsencode(name)))
    finally:
        os.close(fd)
    return len(names) > MOST_LOOKED_AT
