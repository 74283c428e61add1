"""Programs that reach for what is outside their cell: the kernel, the warden, other tests, other users, the network."""

from __future__ import annotations

from sandbox.verdicts import Verdict
from tests.hostile.case import ROOMY, Case, Run, in_pythons, program, words

REFUSED_CALLS = words(
    Verdict.ACCEPTED,
    # The warden.
    "kill_warden", "kill_init", "stop_warden", "pidfd_signal", "pidfd_getfd", "ptrace_attach", "ptrace_seize",
    "ptrace_traceme", "process_vm_readv", "process_vm_writev", "kcmp", "prlimit_warden", "renice_warden",
    "affinity_of_warden", "setpgid_warden",
    # More than was given.
    "nice_up", "affinity", "realtime", "raise_core", "raise_output", "raise_fds",
    # A core for the host's own handler.
    "lower_core", "lower_core_softly", "lower_core_by_the_elder_call",
    # Namespaces, by each of the three calls that make them.
    "unshare_user", "unshare_mnt", "unshare_pid", "unshare_net", "unshare_ipc", "unshare_uts", "unshare_cgroup",
    "unshare_time", "clone_user", "clone_mnt", "clone_pid", "clone_net", "clone_ipc", "clone_uts", "clone_cgroup",
    "clone3_user", "clone3_mnt", "clone3_pid", "clone3_net", "clone3_ipc", "clone3_uts", "clone3_cgroup",
    "clone3_time", "setns",
    # Mounts and devices.
    "mount_proc", "mount_tmpfs", "mount_cgroup", "mount_bind", "remount_root", "umount", "umount_proc", "pivot_root",
    "chroot", "open_tree", "move_mount", "fsopen", "fspick", "mount_setattr", "mknod_disk", "mknod_mem", "swapon",
    # Sockets.
    "inet", "inet_udp", "inet6", "inet_raw", "netlink", "packet", "vsock", "alg", "bluetooth", "inet_high_bits",
    # Kernel machinery.
    "bpf", "keyctl", "add_key", "perf_event_open", "userfaultfd", "io_uring_setup", "init_module", "kexec_load",
    "syslog", "acct", "fanotify", "open_by_handle", "iopl", "reboot",
    # What is the whole host's: unwritten files, filters in its kernel's code, huge pages, threads of a core, locks.
    "sync", "syncfs", "fsync", "fdatasync", "seccomp", "prctl_seccomp", "prctl_high_bits", "socket_filter",
    "core_scheduling", "huge_pages", "huge_memfd", "merged_pages", "record_lock", "record_lock_waiting",
    "open_file_lock",
    # What others do with files that are shared.
    "inotify", "inotify_flags", "dnotify", "dnotify_high_bits", "read_if_cached", "write_hint",
    # What would outlive the process.
    "shmget", "msgget", "semget", "mq_open",
    # Clocks and names.
    "clock_settime", "settimeofday", "sethostname",
    # The doors beside the filter: 32-bit entry and x32 numbers.
    "int80_socket", "int80_unshare", "x32_socket", "x32_unshare",
)  # fmt: skip

NETWORK = """
import socket
reached = []
for host, port in (("127.0.0.1", 8000), ("127.0.0.1", 6379), ("::1", 22), ("10.0.0.1", 53), ("1.1.1.1", 53)):
    try:
        socket.create_connection((host, port), timeout=0.2)
        reached.append(host)
    except OSError:
        pass
try:
    socket.getaddrinfo("example.org", 80)
    reached.append("names")
except OSError:
    pass
with socket.socket(socket.AF_UNIX) as listener:
    for path in ("/run/systemd/notify", "/var/run/docker.sock", "/run/dbus/system_bus_socket"):
        try:
            listener.connect(path)
            reached.append(path)
        except OSError:
            pass
a, b = socket.socketpair()
a.send(b"x")
assert b.recv(1) == b"x"
print(*(reached or ["held"]))
"""

INHERITED = """
import os
open_now = []
for fd in range(3, 4096):
    try:
        os.fstat(fd)
        open_now.append(fd)
    except OSError:
        pass
print("held" if not open_now else "escaped")
"""

# Input of another test, searched for where it could lie: files, descriptors of others, this process's own memory.
OTHER_INPUT = """
import os
mine = os.read(0, 100)
found = set()
for top in ("/box", "/tmp", "/prog", "/dev", "/run", "/var", "/rkgrade", "/proc/1/fd", f"/proc/{os.getppid()}/fd"):
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                text = os.read(fd, 1 << 16)
                os.close(fd)
            except OSError:
                continue
            if b"token" + b"-of-" in text and text != mine and not path.endswith(".py") and b"import os" not in text:
                found.add(path)
print("held" if not found else "escaped")
"""

NEEDLE = b"NEEDLE-0123456789abcdef"

CASES: list[Case] = [
    Case("refused_calls", "c", program("refused_calls.c"), REFUSED_CALLS, ROOMY),
    *in_pythons("secrets", program("secrets.py")),
    *in_pythons("credentials", program("credentials.py"), Run(), Run()),
    *in_pythons("network", NETWORK),
    *in_pythons("inherited_descriptors", INHERITED),
    *in_pythons("other_tests_input", OTHER_INPUT, Run(b"token-of-a\n"), Run(b"token-of-b\n")),
    # The expected output is the needle: only one who found it could print it.
    *in_pythons(
        "expected_output_in_memory",
        program("memory_scan.py"),
        Run(NEEDLE + b"\n", Verdict.WRONG_ANSWER, expected=NEEDLE),
        Run(b"", Verdict.WRONG_ANSWER, expected=NEEDLE),
    ),
    # Whatever reports it sends, its own exit status is what counts.
    *in_pythons("fake_reports", program("fake_warden.py"), *[Run(verdict=Verdict.RUNTIME_ERROR, exit_code=7)] * 2),
    *in_pythons("second_warden", program("second_warden.py"), Run(), Run()),
    Case("forged_stdin", "c", program("stdin_tricks.c"), (Run(b"true input\n", expected=b"true input\n"),) * 3),
    Case("spoilt_stdout", "c", program("stdout_tricks.c"), (Run(),) * 3),
]
