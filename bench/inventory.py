"""What a server has of everything that could pile up: processes, control groups, descriptors, mounts, files, memory.

Counted while it is at rest, so that two counts can be compared.
"""

from __future__ import annotations

import collections
import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import psutil
from redis import Redis
from server import Server

MEMORY_GROWTH = 0.05


@dataclass(frozen=True, slots=True)
class Memory:
    """Of some processes together, in MB. PSS shares common pages out among those that map them; RSS counts them all."""

    pss: float
    rss: float
    anonymous: float
    """Of the PSS, what no file holds: the rest moves as anything else on the machine maps the same libraries."""


def memory(processes: Sequence[psutil.Process]) -> Memory:
    totals = collections.Counter[str]()
    for process in processes:
        if process.status() == psutil.STATUS_ZOMBIE:
            continue  # A cell that has gone, until its worker's next grade: it holds no memory.
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if (found := re.match(r"(Pss|Rss|Pss_Anon): +(\d+) kB", line)) is not None:
                totals[found[1]] += int(found[2])
    return Memory(totals["Pss"] / 1024, totals["Rss"] / 1024, totals["Pss_Anon"] / 1024)


@dataclass(frozen=True, slots=True)
class Sample:
    grades: int
    """How many had been sent by then."""
    counts: dict[str, int]
    memory_mb: dict[str, float]
    pss_mb: float
    """Of API and workers."""
    stores_mb: dict[str, float]
    """Within bounds of their own: compiled programs on disk come and go, Redis keeps the ids of 20,000 ended jobs."""


def sample(server: Server, grades: int) -> Sample:
    """Everything that could pile up. The server must be at rest."""
    api, workers, family = server.api(), server.workers(), server.family()
    pids = {process.pid for process in family}
    hosts = server.hosts()
    inner = memory([api, *hosts, *workers])
    compiled = server.data_dir / "compiled"
    # There is a fixed number of locks, each made when it is first wanted.
    bounded = {compiled, server.data_dir / "locks"}
    kept = [path for path in server.data_dir.rglob("*") if bounded.isdisjoint(path.parents)]
    counts, stores_mb = {}, {}
    if hosts:
        counts["descriptors of hosts with workers"] = sum(host.num_fds() for host in hosts)
    if server.redis_url is not None:
        with contextlib.closing(Redis.from_url(server.redis_url)) as redis:
            counts["keys on Redis"] = redis.dbsize()
            stores_mb["Redis"] = cast(dict[str, int], redis.info("memory"))["used_memory"] / 2**20
    return Sample(
        grades,
        counts={
            "processes, cells included": len(family),
            "cgroups": _groups(pids),
            "descriptors of the API": api.num_fds(),
            "descriptors of the workers": sum(worker.num_fds() for worker in workers),
            "mounts of the host": len(Path("/proc/self/mountinfo").read_text().splitlines()),
            "mounts the workers see": sum(
                len(Path(f"/proc/{worker.pid}/mountinfo").read_text().splitlines()) for worker in workers
            ),
            "files but compiled programs and locks": len(kept),
            "files in the temporary directory": sum(1 for _ in server.scratch_dir.rglob("*")),
            **counts,
        },
        memory_mb={
            "RSS of API and workers": inner.rss,
            "anonymous memory of API and workers": inner.anonymous,
            "anonymous memory, waiting cells included": memory(family).anonymous,
        },
        pss_mb=inner.pss,
        stores_mb={
            "compiled programs on disk": _disk_mb(compiled.rglob("*")),
            "everything else on disk": _disk_mb([*kept, *server.scratch_dir.rglob("*")]),
            **stores_mb,
        },
    )


def growth(warm: Sample, end: Sample) -> list[str]:
    found = [
        f"{name}: {count} -> {end.counts[name]}" for name, count in warm.counts.items() if end.counts[name] > count
    ]
    found += [
        f"{name}, MB: {size:.1f} -> {end.memory_mb[name]:.1f}"
        for name, size in warm.memory_mb.items()
        if end.memory_mb[name] > size * (1 + MEMORY_GROWTH)
    ]
    return found


def _groups(pids: set[int]) -> int:
    """Directories of these processes' graders in any hierarchy."""
    found = 0
    for directory, _, _ in os.walk("/sys/fs/cgroup"):
        owned = re.search(r"/rkgrade-\d+-(\d+)-\d+(/|$)", directory)
        if owned is not None and int(owned[1]) in pids:
            found += 1
    return found


def _disk_mb(paths: Iterable[Path]) -> float:
    return sum(path.lstat().st_blocks for path in paths) * 512 / 2**20
