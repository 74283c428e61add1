"""Reads whatever a thief would look for. Prints "held" where nothing could be read, else what could."""
import os
import sys

found = []


def try_read(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        if os.read(fd, 16):
            found.append(path)
    except OSError:
        pass
    finally:
        os.close(fd)


def try_write(path, data):
    try:
        fd = os.open(path, os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(fd, data)
        found.append("wrote " + path)
    except OSError:
        pass
    finally:
        os.close(fd)


def try_list(path):
    try:
        if os.listdir(path):
            found.append(path)
    except OSError:
        pass


for pid in {1, os.getppid()} | {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}:
    for name in ("mem", "environ", "maps", "auxv", "stack", "syscall", "smaps", "pagemap", "io", "personality"):
        try_read(f"/proc/{pid}/{name}")
    for name in ("fd", "fdinfo", "map_files", "root", "cwd", "ns"):
        try_list(f"/proc/{pid}/{name}")
    for number in range(16):
        try_read(f"/proc/{pid}/fd/{number}")
    try_write(f"/proc/{pid}/mem", b"\0")
    try_write(f"/proc/{pid}/oom_score_adj", b"1000")
    try_write(f"/proc/{pid}/comm", b"mine")
for path in (
    "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/hostname", "/etc/resolv.conf", "/etc/machine-id",
    "/proc/kcore", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/proc/keys", "/dev/mem", "/dev/kmsg", "/dev/port",
    "/dev/sda", "/dev/vda", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/tty", "/dev/ptmx",
    "/var/run/docker.sock", "/run/containerd/containerd.sock", "/var/log/syslog", "/var/lib/dpkg/status",
):  # fmt: skip
    try_read(path)
for path in ("/root", "/home", "/run", "/sys", "/mnt", "/media", "/srv", "/opt", "/boot", "/dev/pts", "/dev/mqueue"):
    try_list(path)
# Of /var, what a language lists as its own, such as GHC's packages: nothing of the host's life.
seen = [path for path, _, files in os.walk("/var") if files and not path.startswith("/var/lib/ghc")]
found.extend(seen)
for path, data in (
    ("/proc/sysrq-trigger", b"h"), ("/proc/sys/kernel/core_pattern", b"|/box/x"), ("/proc/sys/kernel/hostname", b"mine"),
    ("/proc/sys/vm/drop_caches", b"1"), ("/proc/sys/vm/overcommit_memory", b"1"), ("/proc/sys/kernel/shmmax", b"1"),
    ("/proc/sys/fs/file-max", b"1"), ("/proc/self/oom_score_adj", b"-1000"), ("/proc/self/uid_map", b"0 0 1"),
    ("/proc/self/setgroups", b"deny"), ("/proc/self/loginuid", b"0"),
    ("/prog/main.py", b"#"), ("/etc/passwd", b"x"), ("/usr/bin/python3", b"x"),
):  # fmt: skip
    try_write(path, data)
for path in ("/", "/prog", "/usr", "/etc", "/dev", "/proc", "/rkgrade", "/lib", "/usr/lib/python3"):
    try:
        open(path + "/mine", "w").close()
        found.append("made a file in " + path)
    except OSError:
        pass
# Core dumps of a program whose limit is 0 may still go to a pipe where dumps are wanted: not testable from inside.
for name in ("memory", "pids", "cpuacct", "cpuset", "unified", ""):
    for file in ("cgroup.procs", "tasks", "memory.limit_in_bytes", "memory.max", "pids.max"):
        try_write(f"/sys/fs/cgroup/{name}/{file}", b"0")
print("held" if not found else "escaped")
print(found, file=sys.stderr)
