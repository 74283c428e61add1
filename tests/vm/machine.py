"""A throw-away virtual machine whose kernel has control groups of version 2 and no others.

Its root is the root of this host, read-only beneath an overlay in memory: all that is installed here can be run there,
and nothing that it does stays. It takes Debian's own kernel, which is downloaded and unpacked but never installed, and
is emulated, so it runs on hosts that are virtual machines themselves; what computes takes 30 to 50 times as long there.
Knows nothing of what is run in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import lzma
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.obtaining import Unobtainable, output_of

QEMU = "qemu-system-x86_64"
SYSTEMD = Path("/lib/systemd/systemd")
INIT = Path(__file__).with_name("init")
TSC = Path(__file__).with_name("tsc.c")
CACHE = Path(sys.prefix) / "share" / "rkgrade" / "vm"

#: In the order in which they depend on each other.
MODULES = (
    *("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"),
    *("netfs", "fscache", "9pnet", "9pnet_virtio", "9p", "overlay", "virtio_console"),
)
MEMORY_MB = 2048
XZ_MAGIC = b"\xfd7zXZ\x00"


class GaveNoStatus(Exception):
    """The machine ended, or was ended, without a word on its command; holds what it said."""


@dataclass(frozen=True, slots=True)
class Image:
    kernel: Path
    initrd: Path


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    output: str


def image() -> Image:
    """The kernel and first file system, made on the first call and kept. Raises Unobtainable."""
    if platform.machine() != "x86_64":
        raise Unobtainable(f"the machine is made for x86-64, not for {platform.machine()}")
    if shutil.which(QEMU) is None or shutil.which("cpio") is None:
        raise Unobtainable(f"no {QEMU} or no cpio: apt-get install qemu-system-x86 cpio")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        recipe = hashlib.sha256(b"".join((Path(__file__).read_bytes(), INIT.read_bytes()))).hexdigest()[:16]
        folder = CACHE / recipe
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as name:
                _download(Path(name))
                _build(Path(name))
                for old in CACHE.glob("[0-9a-f]" * 16):
                    shutil.rmtree(old)
                (Path(name) / "image").rename(folder)
    return Image(folder / "vmlinux", folder / "initrd")


def _download(folder: Path) -> None:
    try:
        output_of("apt-get", "-qq", "download", _kernel_package(), "busybox-static", cwd=folder)
    except Unobtainable:
        if os.geteuid() != 0:
            raise
        # What is known of packages may be old, or nothing at all.
        output_of("apt-get", "-qq", "update", cwd=folder)
        output_of("apt-get", "-qq", "download", _kernel_package(), "busybox-static", cwd=folder)


def _build(work: Path) -> None:
    unpacked, result, root = work / "unpacked", work / "image", work / "root"
    for package_file in work.glob("*.deb"):
        output_of("dpkg-deb", "-x", str(package_file), str(unpacked), cwd=work)
    result.mkdir()
    (compressed,) = unpacked.glob("boot/vmlinuz-*")
    (result / "vmlinux").write_bytes(_bare_kernel(compressed.read_bytes()))
    for folder in ("bin", "proc", "sys", "dev", "modules", "lower", "upper", "new"):
        (root / folder).mkdir(parents=True)
    shutil.copy(unpacked / "bin/busybox", root / "bin")
    for module in MODULES:
        (found,) = unpacked.rglob(f"{module}.ko")
        shutil.copy(found, root / "modules")
    (root / "modules/order").write_text("\n".join(MODULES))
    shutil.copy(INIT, root / "init")
    (root / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in [root, *root.rglob("*")])
    made = subprocess.run(
        ("cpio", "-o", "-H", "newc", "--quiet"), cwd=root, input=names.encode(), stdout=subprocess.PIPE, check=True
    )
    (result / "initrd").write_bytes(made.stdout)


def _kernel_package() -> str:
    """The package with the kernel that the distribution's newest one stands for."""
    for line in output_of("apt-cache", "depends", "linux-image-amd64", cwd=Path("/")).splitlines():
        kind, _, name = line.strip().partition(": ")
        if kind == "Depends":
            return name
    raise Unobtainable("no package linux-image-amd64 is known here: apt-get update, on Debian")


def _bare_kernel(packed: bytes) -> bytes:
    """The ELF file inside a compressed kernel: QEMU starts it as it is, and no decompression need be emulated."""
    at = packed.find(XZ_MAGIC)
    while at >= 0:
        try:
            kernel = lzma.LZMADecompressor().decompress(packed[at:])
        except lzma.LZMAError:
            kernel = b""
        if kernel.startswith(b"\x7fELF"):
            return kernel
        at = packed.find(XZ_MAGIC, at + 1)
    raise Unobtainable("the kernel of the package linux-image-amd64 is not compressed as it was")


def run(
    image: Image,
    command: Sequence[str],
    control: Path,
    *,
    environment: dict[str, str],
    limit_s: float,
    unit: str | None = None,
) -> Ended:
    """Run a command as root in a new machine, where `control` is /ctl, the one folder that both can write.

    `unit`: text of a service unit of systemd's, which then is process 1 and runs the command instead of what the unit
    would. Raises GaveNoStatus.
    """
    if unit is not None:
        (control / "rkgrade.service").write_text(unit)
    names = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    (control / "command").write_text(f"{names}exec {shlex.join(command)}\n")
    shared = "security_model=none,multidevs=remap"
    qemu = [
        *(QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-M", "pc"),
        *("-smp", str(min(2, len(os.sched_getaffinity(0)))), "-m", str(MEMORY_MB)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-kernel", str(image.kernel), "-initrd", str(image.initrd)),
        *("-append", f"console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable tsc_early_khz={_tsc_khz(control)}"),
        *("-serial", f"file:{control}/console", "-device", "virtio-serial-pci"),
        *("-chardev", f"file,id=output,path={control}/output", "-device", "virtconsole,chardev=output"),
        *("-virtfs", f"local,path=/,mount_tag=root,readonly=on,{shared}"),
        *("-virtfs", f"local,path={control},mount_tag=ctl,{shared}"),
    ]
    try:
        done = subprocess.run(qemu, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s)
        how = f"QEMU ended with status {done.returncode}: {done.stderr.strip()}"
    except subprocess.TimeoutExpired:
        how = f"not within {limit_s} s"
    said = {name: _text(control / name) for name in ("status", "output", "console")}
    if not said["status"]:
        raise GaveNoStatus(f"{how}\n{said['console'][-4000:]}\n{said['output'][-20000:]}")
    return Ended(int(said["status"]), said["output"])


def _tsc_khz(scratch: Path) -> int:
    """How fast the processor's time stamp counter runs, which the guest is given as it is.

    On a busy host a guest finds it out so badly that its clock runs three times too fast.
    """
    program = scratch / "tsc"
    output_of("gcc", "-O2", "-o", str(program), str(TSC), cwd=scratch)
    return int(output_of(str(program), cwd=scratch))


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
