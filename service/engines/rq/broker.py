"""The queue on Redis: what the API and the hosts of workers do to it, each a call.

Nothing here waits for Redis to come back; who calls decides how long it is worth waiting. No error tells the password.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

import structlog
from pydantic import ValidationError
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from rq.job import Job as RQJob
from rq.results import Result
from rq.serializers import JSONSerializer

from sandbox.verdicts import Verdict
from service.engines.admission import room_beyond
from service.engines.answers import Failed, to_frame
from service.engines.frames import Frame
from service.engines.rq.offers import Offer
from service.engines.rq.post import Post
from service.engines.rq.records import UNUSED, Record, Taken, UnreadableRecord, taken
from service.engines.rq.scripts import Script
from service.settings import without_password

#: Why a job was dropped whose clients waited at one API alone, which is gone.
ABANDONED = "abandoned"

#: Why one was dropped that its client wants no more.
CANCELLED = "cancelled"

#: How long a host holds a job that has not been heard of.
LEASE_S = 10

#: How often a host says that it lives.
BEAT_S = 1.0

#: Times a job may take its worker with it before it is set aside.
MOST_ATTEMPTS = 3

#: How long what was set aside is kept, as it is in the scripts.
ASIDE_S = 30 * 86400

#: Offers that could not be read, and have been told of.
_MOST_UNREAD = 100

#: Longer than any command may take that does not wait on purpose.
_ANSWER_WITHIN_S = 5.0
_CONNECT_WITHIN_S = 2.0

#: Redis does one thing at a time. More would cost descriptors, one for each client of a burst.
_MOST_CONNECTIONS = 16

#: Of jobs that have ended and may be asked for again; those go first that would go first by themselves.
MOST_KEPT_BYTES = 256 * 2**20

#: Of the requests of all that is in line, compressed as they are. One that is larger finds room where nothing else is.
MOST_LINE_BYTES = 128 * 2**20

#: How long answers are kept that nobody is expected to ask for again.
LEAST_KEEP_S = 120

_ENQUEUE, _TAKE, _BEAT, _FINISH = Script("enqueue"), Script("take"), Script("beat"), Script("finish")
_GIVE_BACK, _SWEEP, _CANCEL, _STATE = Script("give_back"), Script("sweep"), Script("cancel"), Script("state")
_FORGET = Script("forget")
_DROP_VERDICTS = Script("drop_verdicts")

_log = structlog.get_logger()

_WAKE: Final = "rkgrade:wake"
_STREAM: Final = "rkgrade:ended"
_HOSTS: Final = "rkgrade:hosts"
_SLOTS: Final = "rkgrade:slots"
_SECRET: Final = "rkgrade:secret"


@dataclass(frozen=True, slots=True)
class Full:
    """More waits than may."""

    waiting: int
    workers: int
    mean_busy_s: float
    held_bytes: int = 0
    """Of the requests in line, where these are what is too much."""


@dataclass(frozen=True, slots=True)
class Known:
    """A job of that id is in line, runs, or has a result."""

    fingerprint: str


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a job: an answer, or why there is none."""

    status: str
    """Of RQ: finished, failed, canceled."""
    why: str
    answer: Frame | None


@dataclass(frozen=True, slots=True)
class State:
    """Of the whole cluster."""

    workers: int = 0
    running: int = 0
    waiting: int = 0
    unadmitted: int = 0
    """How many wait whose callers hold no place of their own, as `service.engines.admission` counts them."""
    line_bytes: int = 0
    """What the requests of all that waits take."""
    oldest_s: float = 0.0
    mean_busy_s: float = 1.0
    offers: tuple[Offer, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    priority: str
    id: str
    execution: str


class Broker:
    """One connection pool. Every method raises RedisError where Redis does not do its part."""

    def __init__(self, url: str) -> None:
        self.shown = without_password(url)
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_MOST_CONNECTIONS,
            timeout=_ANSWER_WITHIN_S,
            socket_timeout=_ANSWER_WITHIN_S,
            socket_connect_timeout=_CONNECT_WITHIN_S,
            socket_keepalive=True,
            # Whether a command may be repeated depends on the command.
            retry=Retry(NoBackoff(), 0),
        )
        self._redis: Redis = Redis.from_pool(pool)
        self._unread: set[bytes] = set()

    async def close(self) -> None:
        await self._redis.aclose()

    @property
    def post(self) -> Post:
        """Of sessions, by the same connections."""
        return Post(self._redis)

    # -- for the API

    async def enqueue(self, record: Record, *, most_waiting: int | None) -> Full | Known | None:
        """Put a job in line; again does nothing, but where it ended without a result.

        `most_waiting`: refuse where so many wait already, batches aside, or where what waits takes as much memory as it
        may; None for what is let in by other means.
        """
        pairs = [part for pair in record.fields.items() for part in pair]
        said = await self._run(
            _ENQUEUE,
            record.priority,
            record.id,
            record.client,
            -1 if most_waiting is None else most_waiting,
            0 if most_waiting is None else room_beyond(most_waiting),
            "" if record.deadline_s is None else record.deadline_s,
            MOST_LINE_BYTES,
            MOST_KEPT_BYTES,
            *pairs,
        )
        if said[0] == b"full":
            return Full(int(said[1]), int(said[2]), float(said[3]), int(said[4]))
        return Known(said[1].decode()) if said[0] == b"known" else None

    async def drop_verdicts(self) -> int:
        """Give the memory of results that workers keep for each other back to the queue; how many there were."""
        return int(await _DROP_VERDICTS(self._redis))

    async def cancel(self, id: str) -> str:
        """Drop a job, and have it stopped where it runs; its status until now, empty where there is none of that id."""
        return str((await self._run(_CANCEL, id)).decode())

    async def newest(self) -> str:
        """A place in the stream of ended jobs: its end."""
        entries = cast(Any, await self._redis.xrevrange(_STREAM, count=1))
        return entries[0][0].decode() if entries else "0-0"

    async def ended_since(self, place: str, within_s: float) -> tuple[str, list[str]]:
        """Ids of jobs that ended after that place in the stream, and the place reached; waits for the first."""
        streams = await self._redis.xread({_STREAM: place}, count=1000, block=int(within_s * 1000))
        if not streams:
            return place, []
        entries = cast(Any, streams)[0][1]
        return entries[-1][0].decode(), [fields.get(b"id", b"").decode("utf-8", "replace") for _, fields in entries]

    async def outcomes(self, ids: Sequence[str], spent: Sequence[str] = ()) -> list[Ended | None]:
        """What became of each; None where it has not ended. Forgets those `spent`, which nobody will ask for."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for id in ids:
                pipe.hmget(_job_key(id), "status", "exc_info")
                pipe.get(f"rkgrade:answer:{id}")
            if spent:
                pipe.unlink(*(key for id in spent for key in (_job_key(id), f"rkgrade:answer:{id}")))
            said = await pipe.execute()
        return [_ended(said[2 * n], said[2 * n + 1]) for n in range(len(ids))]

    async def statuses(self, ids: Sequence[str]) -> list[str | None]:
        """The status of each; None where Redis knows of no such job."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for id in ids:
                pipe.hget(_job_key(id), "status")
            return [None if status is None else status.decode() for status in await pipe.execute()]

    async def forget(self, id: str) -> None:
        """Keep nothing of a job that has ended."""
        await self._run(_FORGET, id)

    async def wanted_status(self, id: str, *, client: str) -> str | None:
        """The status of a job; None where there is none, it was cancelled, or is not that client's. `client`: empty for
        anybody's.
        """
        status, why, owner = await cast(Any, self._redis.hmget(_job_key(id), ["status", "exc_info", "rk_client"]))
        if status is None or why == CANCELLED.encode() or (client and owner != client.encode()):
            return None
        return str(status.decode())

    async def secret(self, proposed: bytes) -> bytes:
        """The one that all APIs share: as proposed, where there is none yet."""
        while (shared := cast(bytes | None, await self._redis.get(_SECRET))) is None:
            await self._redis.set(_SECRET, proposed, nx=True)
        return shared

    async def state(self, api: str) -> State:
        """As the API of that name sees it, which so tells that it lives."""
        said = await self._run(_STATE, api)
        workers, running, waiting, unadmitted, line_bytes, oldest_s, mean_busy_s, offers = said
        return State(
            workers,
            running,
            waiting,
            unadmitted,
            line_bytes,
            float(oldest_s),
            float(mean_busy_s),
            tuple(offer for text in offers if (offer := self._offer(text)) is not None),
        )

    def _offer(self, text: bytes) -> Offer | None:
        """None where the host tells nothing, or in words of another version's: it may be replaced just now."""
        try:
            return Offer.model_validate_json(text) if text else None
        except ValidationError as error:
            if text not in self._unread:
                self._unread = {*list(self._unread)[:_MOST_UNREAD], text}
                _log.warning("what a host offers cannot be read; is it of another version?", error=str(error))
            return None

    async def sweep(self) -> list[str]:
        """Take back what silent hosts hold, and set aside what has lost too many of them; the ids of both."""
        back, aside = await self._run(_SWEEP, MOST_ATTEMPTS)
        for id in aside:
            await self._show_causes(id.decode())
        return [id.decode() for id in (*back, *aside)]

    # -- for hosts

    async def take(self, host: str, most: int, *, free_mb: float, busy: bool) -> list[Taken]:
        """Lease up to `most` jobs that fit into the host's memory."""
        executions = [uuid.uuid4().hex for _ in range(most)]
        rows = await self._run(_TAKE, host, free_mb, int(busy), LEASE_S, *executions)
        now_s = time.monotonic()
        read: list[Taken] = []
        for priority, id, execution, waited_s, fields in rows:
            lease = Lease(priority.decode(), id.decode(), execution.decode())
            try:
                work = taken(lease.priority, lease.id, lease.execution, float(waited_s), _pairs(fields), now_s)
            except UnreadableRecord as error:
                _log.error("what is queued is no work for a grader", job=lease.id, error=str(error))
                await self.finish(
                    lease, to_frame(Failed("what was queued for this cannot be read")), keep_s=0, took_s=0
                )
                continue
            read.append(work)
        return read

    async def work_may_wait(self, within_s: float) -> None:
        """Return as soon as there may be something to take, or after that time."""
        await cast(Any, self._redis.blpop([_WAKE], timeout=within_s))

    async def beat(self, host: str, workers: int, offer: str, leases: Sequence[Lease]) -> set[str]:
        """Hold on to what this host has; the executions that it is to give up."""
        members = [part for lease in leases for part in (lease.priority, lease.id, lease.execution)]
        return {execution.decode() for execution in await self._run(_BEAT, host, workers, offer, LEASE_S, *members)}

    async def finish(self, lease: Lease, answer: Frame, *, keep_s: int, took_s: float) -> bool:
        """Tell what a job came to; False where another answer was first. A fault of the grader's stands until the job
        is enqueued again.
        """
        keep_s = max(keep_s, LEAST_KEEP_S)
        summary = answer.fields.get("summary", {})
        anew = answer.kind == "fault" or summary.get("verdict") == Verdict.INTERNAL_ERROR.value
        arguments = (
            lease.priority,
            lease.id,
            lease.execution,
            answer.encode(),
            keep_s,
            took_s,
            int(anew),
            MOST_KEPT_BYTES,
        )
        return bool(await self._run(_FINISH, *arguments))

    async def give_back(self, lease: Lease, cause: str) -> bool:
        """Put a job back in line; whether it is set aside instead. No cause: its worker did not die of it."""
        aside = bool(await self._run(_GIVE_BACK, *astuple(lease), cause, MOST_ATTEMPTS))
        if aside:
            await self._show_causes(lease.id)
        return aside

    async def leave(self, host: str) -> None:
        """This host is gone."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.zrem(_HOSTS, host)
            pipe.hdel(_SLOTS, host)
            await pipe.execute()

    async def _show_causes(self, id: str) -> None:
        """Where RQ's own tools look for why a job has failed."""
        [ended] = await self.outcomes([id])
        if ended is not None:
            result = Result(id, Result.Type.FAILED, UNUSED, exc_string=ended.why, serializer=JSONSerializer)
            key = Result.get_key(id)  # type: ignore[no-untyped-call]
            await self._redis.xadd(key, cast(Any, result.serialize()), maxlen=10)
            await self._redis.expire(key, ASIDE_S)

    async def _run(self, script: Script, *arguments: str | bytes | int | float) -> Any:
        return await script(self._redis, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), *arguments)


def _job_key(id: str) -> str:
    return RQJob.key_for(id)


def _pairs(flat: Sequence[bytes]) -> Mapping[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _ended(fields: Sequence[bytes | None], answer: bytes | None) -> Ended | None:
    known, why = ((field or b"").decode("utf-8", "replace") for field in fields)
    if known not in ("finished", "failed", "canceled"):
        return None
    return Ended(known, why, None if answer is None else _frame(answer))


def _frame(answer: bytes) -> Frame:
    """A fault where it is none: as good as any other answer to whoever waits for it."""
    try:
        return Frame.decode(answer)
    except ValueError:
        return to_frame(Failed("what stands for this one's answer is none"))
