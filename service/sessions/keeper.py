"""All sessions that are open: how many there may be, whose they are, and when each has to end.

A session ends when its client closes it; when nothing was asked of it for its `ttl_s`; at the end of its time or of its
CPU time; when the token that opened it is no longer good; when its cell is lost; and with this process. Nothing of it
is left then: its processes, its disk and its control groups go with its cell.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from sandbox import prebuilt
from sandbox.cgroups import Cgroups, open_cgroups
from sandbox.config import SandboxConfig
from sandbox.errors import GraderFault, HostError
from sandbox.judge import UIDS_PER_SLOT
from sandbox.session import Session, SessionLimits
from service import contract
from service.errors import InternalError, InvalidRequest, NoSession, SessionEnded, SessionsFull, Unavailable
from service.metrics import Metrics
from service.sessions.base import Owner
from service.sessions.live import LiveSession

#: How often it is looked which of them have to end.
_LOOK_S = 0.5

#: Of the memory that programs may use together, what sessions may hold at most.
_MEMORY_SHARE = 0.5

#: Of sessions that have ended, those of which it is known why: whoever asks for one of them is told.
_REMEMBERED = 4096

_MIB = 2**20

_log = structlog.get_logger()


@dataclass(eq=False, slots=True)
class _Kept:
    live: LiveSession
    limits: contract.SessionLimits
    uid: int
    closing: asyncio.Task[None] | None = field(default=None)


class Keeper:
    """See `service.sessions.base.Sessions`. `start` first, `close` last."""

    def __init__(
        self,
        config: SandboxConfig,
        *,
        slot: int,
        most: int,
        lifetime_s: float,
        memory_bytes: float,
        set_aside: Callable[[int], None],
        cores: frozenset[int],
        metrics: Metrics,
    ) -> None:
        """`slot`: whose uids its cells have. `memory_bytes`: what programs may use together; `set_aside`: told how much
        of it is not to be had for grades any more, less than 0 where it is again. `cores`: those that sessions run on.
        Raises HostError where what cells need is not prebuilt.
        """
        self._config = config
        self._first_uid = config.uid_base + slot * UIDS_PER_SLOT
        self._most = most
        self._lifetime_s = lifetime_s
        self._memory_bytes = _MEMORY_SHARE * memory_bytes
        self._set_aside = set_aside
        self._cores = cores
        self._metrics = metrics
        self._mounts = prebuilt.mounts(config)
        self._groups: Cgroups | None = None
        self._kept: dict[str, _Kept] = {}
        self._ended_as: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Whose each was, and why it ended."""
        self._free_uids = [self._first_uid + 2 * number for number in range(UIDS_PER_SLOT // 2)]
        self._opening = 0
        self._held_bytes = 0
        self._made = 0
        self._closed = False
        self._watching: asyncio.Task[None] | None = None
        self.token_is_good: Callable[[bytes], bool] = lambda _: True
        """Whether the token of that hash may still be used here."""
        metrics.watch_sessions(lambda: len(self._kept))

    def start(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    # -- opening and finding

    async def open(self, request: contract.SessionRequest, files: Mapping[str, bytes], owner: Owner) -> LiveSession:
        # Whoever asked may leave meanwhile: nobody then knows of it, and it ends when it has been idle for long enough.
        return await asyncio.shield(asyncio.create_task(self._open(request, files, owner)))

    async def _open(self, request: contract.SessionRequest, files: Mapping[str, bytes], owner: Owner) -> LiveSession:
        if self._closed:
            raise Unavailable("the service is shutting down and takes no new work")
        limits = request.limits
        memory_bytes = limits.memory_mb * _MIB
        if memory_bytes > self._memory_bytes:
            most_mb = int(self._memory_bytes) // _MIB
            raise InvalidRequest.at("limits.memory_mb", f"sessions may hold {most_mb} MiB together on this host")
        if len(self._kept) + self._opening >= self._most or not self._free_uids:
            raise SessionsFull(f"{self._most} sessions are open, as many as may", retry_after_s=5)
        if self._held_bytes + memory_bytes > self._memory_bytes:
            raise SessionsFull("the sessions that are open hold as much memory as they may", retry_after_s=5)
        self._opening += 1
        self._hold(memory_bytes)
        uid = self._free_uids.pop(0)
        try:
            if self._groups is None:
                self._groups = open_cgroups(insecure_no_cgroup=self._config.insecure_no_cgroup)
            self._made += 1
            session = await asyncio.to_thread(self._make, self._groups, self._made, limits, uid)
        except (GraderFault, HostError, OSError) as error:
            self._give_back(uid, memory_bytes)
            _log.error("no session could be opened", error=str(error))
            raise InternalError("no session could be opened: the service's log says more") from None
        finally:
            self._opening -= 1
        ends_s = time.monotonic() + self._lifetime_s
        live = LiveSession(secrets.token_hex(16), owner, session, ttl_s=request.ttl_s, ends_s=ends_s)
        kept = self._kept[live.id] = _Kept(live, limits, uid)
        try:
            await live.write(files)
        except BaseException:
            self._end(kept, "failed")
            raise
        return live

    def _make(self, groups: Cgroups, number: int, limits: contract.SessionLimits, uid: int) -> Session:
        return Session(
            groups.cell(f"session-{number}"),
            host_uid=uid,
            mounts=self._mounts,
            limits=SessionLimits(
                memory_bytes=limits.memory_mb * _MIB,
                disk_bytes=limits.disk_mb * _MIB,
                inodes=limits.files,
                processes=limits.processes,
            ),
            cores=self._cores,
        )

    async def find(self, identifier: str, client: str) -> LiveSession:
        kept = self._kept.get(identifier)
        owner, why = self._ended_as.get(identifier, (None, ""))
        if owner == client:
            raise SessionEnded(why)
        if kept is None or kept.closing is not None or kept.live.owner.client != client:
            raise NoSession
        return kept.live

    async def end(self, identifier: str, client: str) -> None:
        live = await self.find(identifier, client)
        await asyncio.shield(self._end(self._kept[live.id], "closed"))

    # -- what there is

    @property
    def live(self) -> list[LiveSession]:
        """Those that are open."""
        return [kept.live for kept in self._kept.values() if kept.closing is None]

    def why_ended(self, identifier: str) -> str:
        """Of one that is open no more, and ended not long ago."""
        return self._ended_as.get(identifier, ("", "lost"))[1]

    @property
    def held_bytes(self) -> float:
        """Memory that they may use."""
        return self._held_bytes

    @property
    def room(self) -> tuple[int, float, float]:
        """How many more there may be, what memory these may use, and what all may use together."""
        free = min(self._most - len(self._kept) - self._opening, len(self._free_uids))
        return free, self._memory_bytes - self._held_bytes, self._memory_bytes

    # -- ends

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            now_s = time.monotonic()
            for kept in list(self._kept.values()):
                if kept.closing is None and (why := self._over(kept, now_s)) is not None:
                    self._end(kept, why)

    def _over(self, kept: _Kept, now_s: float) -> str | None:
        live = kept.live
        if live.lost is not None:
            return "lost"
        if live.ends_s <= now_s:
            return "lifetime"
        if live.expires_s <= now_s:
            return "idle"
        if live.cpu_s > kept.limits.cpu_s:
            return "cpu"
        if live.owner.token is not None and not self.token_is_good(live.owner.token):
            return "token"
        return None

    def _end(self, kept: _Kept, why: str) -> asyncio.Task[None]:
        if kept.closing is None:
            if why == "lost":
                _log.error("a session's cell was lost", error=kept.live.lost)
            self._ended_as[kept.live.id] = (kept.live.owner.client, why)
            while len(self._ended_as) > _REMEMBERED:
                self._ended_as.popitem(last=False)
            kept.closing = asyncio.create_task(self._ended(kept, why))
        return kept.closing

    async def _ended(self, kept: _Kept, why: str) -> None:
        try:
            await kept.live.close(why)
        except (GraderFault, HostError, OSError) as error:
            _log.error("what a session left could not be cleared", error=str(error))
        finally:
            del self._kept[kept.live.id]
            self._give_back(kept.uid, kept.limits.memory_mb * _MIB)
            self._metrics.session_ended(why)

    def _hold(self, memory_bytes: int) -> None:
        self._held_bytes += memory_bytes
        self._set_aside(memory_bytes)

    def _give_back(self, uid: int, memory_bytes: int) -> None:
        self._free_uids.append(uid)
        self._hold(-memory_bytes)

    async def drain(self, timeout_s: float) -> bool:
        """Wait for the commands that run; False where the time did not suffice."""
        until_s = time.monotonic() + timeout_s
        while any(kept.live.busy for kept in self._kept.values()):
            if time.monotonic() >= until_s:
                return False
            await asyncio.sleep(0.05)
        return True

    async def close(self) -> None:
        """End them all. Again: does nothing."""
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
            self._watching = None
        while self._opening:
            await asyncio.sleep(0.02)
        await asyncio.gather(*(self._end(kept, "shutdown") for kept in list(self._kept.values())))
        if self._groups is not None:
            await asyncio.to_thread(self._groups.close)
            self._groups = None
