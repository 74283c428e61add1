"""Runs under way: started, watched from outside until they have ended, and taken account of.

A run is watched without any word from inside: `ActiveRun` sleeps until the program can at the earliest have reached its
CPU limit, then asks the cgroup; the wall limit is on the judge's own clock. Several runs are watched at once where
programs talk to each other (`wait_for`). Knows nothing of how cells are made.
"""

from __future__ import annotations

import math
import os
import resource
import select
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from sandbox import nsjail
from sandbox.cgroups import CellGroup, Usage
from sandbox.errors import Cancelled, GraderFault
from sandbox.jail import wire
from sandbox.problem import Limits
from sandbox.pumps import Pump
from sandbox.run import Left, Output, RunRecord, RunRequest
from sandbox.verdicts import Evidence

#: How long a warden may take to answer a kill; past it its cell is ended from outside.
KILL_GRACE_S = 5.0

#: A program that has slept for so long, and used no more than this share of a core, is taken for one that waits for
#: more to read. Not none: threads of a virtual machine's own tick on.
REST_S = 0.1
REST_SHARE = 0.1

#: For how long an end is withheld at most; some look for it again and again, and would never rest.
MOST_WITHHELD_S = 2.0

#: How far, in wall limits, waiting for a core can put off the end of a run.
MAX_WAIT_FACTOR = 10

#: Room beyond the memory limit for pages of outputs, which the kernel charges to who writes them: an eighth of the
#: limit, and at least so much. What was printed is taken off the peak, though it may not have been there at the peak:
#: so this is also the most that a program can gain by printing.
LEAST_HEADROOM_BYTES = 16 * 2**20

#: Clean pages of files, at most, that are taken off the peak: of an interpreter and its libraries that nobody had read
#: since the host started. Not more, since a program could read files after its peak.
FILE_CACHE_BYTES = 32 * 2**20

#: Signals with a value and POSIX timers of a program's, at once. Few use any.
MOST_PENDING = 1024

#: Unit of `st_blocks`, see stat(2).
BLOCK_BYTES = 512


class Channel(Protocol):
    """The conversation with a cell's warden, as far as a run needs it."""

    def fileno(self) -> int: ...

    def send(self, message: wire.Message, fds: Sequence[int] = ()) -> None: ...

    def receive(self, timeout_s: float | None = None) -> tuple[wire.Message, list[int]]:
        """Raises GraderFault."""
        ...

    def end(self) -> None:
        """End every process of the cell."""


class ActiveRun:
    """A run that has been started. `record` is there once `wait_for` returned."""

    def __init__(self, request: RunRequest, group: CellGroup, channel: Channel, cores: int) -> None:
        """Start the program, which may run on so many cores. The group's limits hold room for what it may print."""
        limits = request.limits
        self._limits = limits
        self._group = group
        self._channel = channel
        self._cores = cores
        self._waited_s = 0.0
        self._over_wall = False
        self._over = False
        self.beside: ActiveRun | None = None
        """A run whose words this one waits for: as that one waits for its core, this one does not idle."""
        self._killed_at: float | None = None
        self.leader: ActiveRun | None = None
        """A run whose end ends this one. What it computes is no idling of this one, which waits for it."""
        self.pump: Pump | None = None
        """What carries its words to another run, where they are counted; beyond its bound is over the output limit."""
        self.hears: Pump | None = None
        """What carries another's words to this run, and withholds their end until this one has slept for `REST_S`."""
        self.told_end = False
        """Whether that end was made known to it as it waited for more, so that it was over this that it ended."""
        self._withheld_since: float | None = None
        self._slept_since = (0.0, 0.0)
        self.sweeping = False
        """Whether the warden is still to say that it has emptied the scratch disk."""
        self.pid = 0
        """The program's process id in its cell, once it has ended."""
        self.used_s = 0.0
        """CPU seconds it took, once it has ended."""
        self.ended_at = 0.0
        """When the warden saw that the program's first process had ended, on the kernel's clock, which cells share.

        Good to a few milliseconds: descriptors close early in a process's end, so that a program which waited for
        that may be seen to end before the one it waited for.
        """
        self._output_fds = request.output_fds
        outputs = 2 + len(request.output_fds) + len(request.collect)
        headroom = min(outputs * (limits.output_bytes + 1), max(LEAST_HEADROOM_BYTES, limits.memory_bytes // 8))
        entries = group.begin(limits.memory_bytes + headroom, limits.processes)
        self._stdout, self._stderr = Output.new("stdout"), Output.new("stderr")
        stdout_fd = self._stdout.fd if request.stdout_fd is None else request.stdout_fd
        message = {
            "op": "run",
            "action": request.action.value,
            "argv": request.argv,
            "rlimits": rlimits(limits, counted=bool(entries), address_space=request.limits_address_space),
            "collect": request.collect,
            "gather": request.gather,
            "extras": len(request.extra_fds),
            "prepare": request.preparations(),
        }
        fds = [request.stdin_fd, stdout_fd, self._stderr.fd, *request.extra_fds, *entries]
        try:
            channel.send(message, fds)
        except BaseException:
            self._forget()
            raise
        self._started = time.monotonic()

    def fileno(self) -> int:
        return self._channel.fileno()

    def abandon(self) -> None:
        """End a run whose record will never be taken, and its cell."""
        self._channel.end()
        self._forget()

    def _forget(self) -> None:
        self._stdout.close()
        self._stderr.close()

    def enforce(self) -> float | None:
        """End the run where it is at a limit; seconds until that must be looked at again.

        None where the warden did not answer in time, and the cell was ended: the run is over.
        """
        if (self.leader is not None and self.leader.ended_at > 0) or self._said_too_much:
            self.kill()
        now = time.monotonic()
        if self._killed_at is not None:
            left = self._killed_at + KILL_GRACE_S - now
            if left <= 0:
                self._channel.end()
                return None
            return left
        wall_left = self._wall_left(now)
        cpu_used = self._group.cpu_s()
        cpu_left = wall_left if cpu_used is None else (self._limits.cpu_s - cpu_used) / self._cores
        if wall_left > 0 and cpu_left >= 0:
            return min(wall_left, cpu_left, self._tell_end(now, cpu_used))
        self._over_wall = wall_left <= 0
        self.kill()
        return KILL_GRACE_S

    def _tell_end(self, now: float, cpu_used: float | None) -> float:
        """Make a withheld end known once the program waits for more; seconds until that must be looked at again."""
        if self.hears is None or not self.hears.withheld:
            return math.inf
        used_s = cpu_used or 0.0
        if self._withheld_since is None:
            self._withheld_since, self._slept_since = now, (now, used_s)
        since, used_before_s = self._slept_since
        if not self._group.sleeps() or used_s - used_before_s > REST_SHARE * (now - since):
            self._slept_since = (now, used_s)
        elif now - since >= REST_S:
            self.told_end = True
        if self.told_end or now - self._withheld_since >= MOST_WITHHELD_S:
            self.hears.close()
            return math.inf
        return REST_S

    def kill(self) -> None:
        """Have the run ended at once, for whatever reason."""
        if self._killed_at is None:
            self._killed_at = time.monotonic()
            self._channel.send({"op": "kill"})

    @property
    def stopped_at(self) -> float | None:
        """When the program was told to end, on the clock of `ended_at`; None where it ended by itself."""
        return self._killed_at

    @property
    def _said_too_much(self) -> bool:
        return self.pump is not None and self.pump.over

    def _wall_left(self, now: float) -> float:
        limit_s = self._limits.effective_wall_s
        left = limit_s + self._waited_s - (now - self._started)
        if left <= 0 and (waited := self._waited_for_core_s()) > self._waited_s:
            # It waited for its core as others' work ran there: that is no idling.
            left += min(waited, MAX_WAIT_FACTOR * limit_s) - self._waited_s
            self._waited_s = waited
        if left <= 0 and self.leader is not None:
            left += (self.leader._group.cpu_s() or 0.0) + self.leader._waited_for_core_s()
        return left

    def _waited_for_core_s(self) -> float:
        other = self.beside
        return self._group.waited_s() + (0.0 if other is None or other._over else other._group.waited_s())

    def take_answer(self) -> RunRecord:
        """The record, once the channel is readable. Raises GraderFault."""
        message, fds = self._channel.receive()
        try:
            status, said_cpu_s = int(message["status"]), float(message["cpu_s"])
            wall_s = min(time.monotonic() - self._started, float(message["wall_s"]))
            names, outputs = message["collected"], [Output(fd) for fd in fds]
            collected = dict(zip(names, outputs[: len(names)], strict=True))
            left = None
            if "gathered" in message:
                gathered = (name.encode("latin-1") for name in message["gathered"])
                left = Left(dict(zip(gathered, outputs[len(names) :], strict=True)), int(message["left_out"]))
            self.sweeping = bool(message["sweeping"])
            self.ended_at = float(message["ended_at"])
            self.pid = int(message["pid"])
            compiled = bool(message["compiled"])
        except (KeyError, TypeError, ValueError) as error:
            raise GraderFault(f"the warden broke the protocol: {error!r}") from error
        record = self._record(status, said_cpu_s, wall_s, collected)
        return replace(record, compiled=compiled, left=left)

    def give_up(self) -> RunRecord:
        """The record of a run whose warden never answered: by what the kernel says alone."""
        self.ended_at = time.monotonic()
        return self._record(signal.SIGKILL.value, 0.0, self.ended_at - self._started, {})

    def _record(self, status: int, said_cpu_s: float, wall_s: float, collected: dict[str, Output]) -> RunRecord:
        limits, stdout, stderr = self._limits, self._stdout, self._stderr
        self._over = True
        usage = self._group.end() or Usage(cpu_s=said_cpu_s, peak_bytes=0, file_cache_bytes=0, oom_kills=0)
        self.used_s = usage.cpu_s
        exit_code = os.waitstatus_to_exitcode(status)
        died_of = -exit_code if exit_code < 0 else None
        outputs = [
            os.fstat(fd) for fd in (stdout.fd, stderr.fd, *self._output_fds, *(o.fd for o in collected.values()))
        ]
        over_output = (
            max(output.st_size for output in outputs) > limits.output_bytes
            or died_of == signal.SIGXFSZ
            or self._said_too_much
        )
        # Pages of the outputs are charged to the program, which never asked for them; holes have none.
        charged_bytes = sum(min(output.st_size, output.st_blocks * BLOCK_BYTES) for output in outputs)
        file_cache_bytes = min(usage.file_cache_bytes, FILE_CACHE_BYTES)
        memory_bytes = max(0, usage.peak_bytes - charged_bytes - file_cache_bytes)
        evidence = Evidence(
            over_memory=usage.oom_kills > 0 or memory_bytes > limits.memory_bytes,
            over_cpu=usage.cpu_s > limits.cpu_s,
            over_wall=self._over_wall,
            over_output=over_output,
            exit_code=None if died_of else exit_code,
            signal=died_of,
        )
        # The group's own limit is reached at no less than the program's; a kill below that was for others' memory.
        by_host = usage.oom_kills > 0 and usage.peak_bytes < limits.memory_bytes
        return RunRecord(
            evidence, limits, usage.cpu_s, wall_s, memory_bytes, stdout, stderr, collected, by_host, usage.oom_kills
        )


def wait_for(
    runs: Sequence[ActiveRun], cancel_fd: int | None = None, remains: Mapping[ActiveRun, Pump] | None = None
) -> list[RunRecord]:
    """Watch runs until all have ended; their records in the same order.

    `remains` are pumps to be driven once a run has ended: they take what is still said to it.

    Raises GraderFault, and Cancelled once `cancel_fd` is readable; every cell that still has a run is then ended.
    """
    records: dict[ActiveRun, RunRecord] = {}
    try:
        while waiting := [run for run in runs if run not in records]:
            left = {run: run.enforce() for run in waiting}
            for run, seconds in left.items():
                if seconds is None:
                    records[run] = run.give_up()
            timeouts = [seconds for seconds in left.values() if seconds is not None]
            if not timeouts:
                continue
            # One may carry from one run to another.
            pumps = list({pump: None for run in runs for pump in (run.pump, run.hears) if pump is not None})
            pumps += [pump for run, pump in (remains or {}).items() if run in records]
            for run in _ready([run for run in waiting if run not in records], min(timeouts), cancel_fd, pumps):
                records[run] = run.take_answer()
    except BaseException:
        for run in runs:
            if run in records:
                records[run].close()
            else:
                run.abandon()
        raise
    return [_with_all_it_said(run, records[run]) for run in runs]


def _with_all_it_said(run: ActiveRun, record: RunRecord) -> RunRecord:
    """What a run wrote before it ended may have been too much, and been read only after that."""
    if run.pump is None or not run.pump.over:
        return record
    return replace(record, evidence=replace(record.evidence, over_output=True))


def _ready(
    runs: Sequence[ActiveRun], timeout_s: float, cancel_fd: int | None, pumps: Sequence[Pump]
) -> list[ActiveRun]:
    poller = select.poll()
    for run in runs:
        poller.register(run, select.POLLIN)
    if cancel_fd is not None:
        poller.register(cancel_fd, select.POLLIN)
    for pump in pumps:
        for fd, events in pump.waits_for().items():
            poller.register(fd, events)
    # Rounded up: a poll that returns a moment early would spin until the limit is really reached.
    ready = dict(poller.poll(int(timeout_s * 1000) + 1))
    if cancel_fd in ready:
        raise Cancelled
    for pump in pumps:
        if not ready.keys().isdisjoint(pump.waits_for()):
            pump.move(ready)
    return [run for run in runs if run.fileno() in ready]


def rlimits(limits: Limits, *, counted: bool, address_space: bool) -> list[tuple[int, int]]:
    """Resource limits of the program itself: second lines of defence behind the cgroup, but for file size and stack.

    RLIMIT_FSIZE is one byte beyond the output limit, so that output of exactly the limit passes.
    """
    rlimits = [
        (resource.RLIMIT_FSIZE, limits.output_bytes + 1),
        (resource.RLIMIT_STACK, min(limits.memory_bytes, nsjail.STACK_BYTES)),
        # Far off: it counts by samples, and on a loaded host was seen to fire at two thirds of its value.
        (resource.RLIMIT_CPU, 2 * int(limits.cpu_s) + 5),
        (resource.RLIMIT_NOFILE, _at_most(1024, resource.RLIMIT_NOFILE)),
        (resource.RLIMIT_MEMLOCK, 64 * 1024),
        # Timers too: kernels before 6.13 serve each one of them every tick, in nobody's time, where its signal is
        # ignored.
        (resource.RLIMIT_SIGPENDING, _at_most(MOST_PENDING, resource.RLIMIT_SIGPENDING)),
    ]
    if not counted:
        rlimits.append((resource.RLIMIT_NPROC, limits.processes))
        if address_space:
            rlimits.append((resource.RLIMIT_AS, limits.memory_bytes + 64 * 2**20))
    return rlimits


def _at_most(wanted: int, limit: int) -> int:
    """The value, or this process's own hard limit where that is lower: nobody could raise it."""
    _, hard = resource.getrlimit(limit)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
