"""Tries to become somebody else. Prints "held" where it stayed who it was."""
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
before = os.getresuid(), os.getresgid(), os.getgroups()
got = []


def attempt(name, call, *arguments):
    try:
        result = call(*arguments)
    except (OSError, OverflowError):
        return
    if result not in (None, 0, -1):
        got.append(f"{name}: {result}")


def status(field):
    with open("/proc/self/status") as file:
        return next(line.split(":")[1].strip() for line in file if line.startswith(field + ":"))


for uid in (0, 1, 1001, 65534):
    attempt("setuid", os.setuid, uid)
    attempt("seteuid", os.seteuid, uid)
    attempt("setreuid", os.setreuid, uid, uid)
    attempt("setresuid", os.setresuid, uid, uid, uid)
    attempt("setgid", os.setgid, uid)
    attempt("setresgid", os.setresgid, uid, uid, uid)
    attempt("setgroups", os.setgroups, [uid])
    # Answer with the id that was in force before.
    libc.setfsuid(uid)
    libc.setfsgid(uid)
if (libc.setfsuid(-1), libc.setfsgid(-1)) != (before[0][0], before[1][0]):
    got.append("file system ids")

# capset: all capabilities, version 3.
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
data = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
if libc.capset(header, data) == 0:
    got.append("capset")
for option, value in ((47, 2), (28, 1), (8, 1), (38, 0)):  # ambient raise, securebits, keepcaps, no_new_privs off
    libc.prctl(option, value, 7, 0, 0)
libc.prctl(4, 1, 0, 0, 0)  # dumpable: harmless, but must not open the warden
if libc.prctl(39, 0, 0, 0, 0) != 1:
    got.append("no_new_privs")

# A set-uid copy owned by another.
for directory in ("/tmp", "/box"):
    path = directory + "/suid"
    with open("/bin/cat", "rb") as source, open(path, "wb") as copy:
        copy.write(source.read())
    attempt("chown", os.chown, path, 0, 0)
    os.chmod(path, 0o6777)
    if os.stat(path).st_uid != before[0][0]:
        got.append("chown")
for path in ("/", "/tmp", "/box", "/prog", "/dev/null", "/etc/passwd", "/usr/bin/python3", "/proc"):
    for call, *arguments in ((os.chmod, 0o777), (os.chown, before[0][0], before[1][0])):
        old = os.stat(path)
        try:
            call(path, *arguments)
        except OSError:
            continue
        new = os.stat(path)
        if (new.st_mode, new.st_uid) != (old.st_mode, old.st_uid):
            got.append(f"{call.__name__} {path}")
for name in ("/tmp", "/box"):
    try:
        os.rename(name, name + "2")
        got.append("rename " + name)
    except OSError:
        pass
    try:
        os.rmdir(name)
        got.append("rmdir " + name)
    except OSError:
        pass
if (os.getresuid(), os.getresgid(), os.getgroups()) != before:
    got.append("ids changed")
for field in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
    if int(status(field), 16):
        got.append(field)
print("held" if not got else "escaped")
print(got, file=sys.stderr)
