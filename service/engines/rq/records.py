"""What is queued, as the records that RQ keeps of jobs: hashes with arguments in JSON, never pickled.

Knows nothing of connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from redis import Redis
from rq.exceptions import DeserializationError
from rq.job import Job as RQJob
from rq.job import JobStatus
from rq.serializers import JSONSerializer

from service.contract import GradeRequest, RunRequest
from service.engines.base import Job, Priority, ToolCall, Vetting, Work

_MIB = 2**20

#: RQ wants a connection for each record; none of those made here ever uses this.
UNUSED: Final = Redis()


def grade(request: str, index: int | None, age_s: float) -> NoReturn:
    """What records name as the function of a grade."""
    raise RuntimeError("grades are for `rkgrade worker`, which keeps a judge; `rq worker` has none")


def vet(problem: str) -> NoReturn:
    """What records name as the function of a vetting."""
    raise RuntimeError("vettings are for `rkgrade worker`, which keeps a judge; `rq worker` has none")


def run(request: str, age_s: float) -> NoReturn:
    """What records name as the function of a single program's run."""
    raise RuntimeError("runs are for `rkgrade worker`, which keeps a judge; `rq worker` has none")


_GRADE, _VET, _RUN = (f"{function.__module__}.{function.__qualname__}" for function in (grade, vet, run))


class UnreadableRecord(Exception):
    """What is queued is none of ours, or none of this version's."""


@dataclass(frozen=True, slots=True)
class Record:
    """One piece of work, ready to be queued."""

    id: str
    priority: Priority
    client: str
    deadline_s: float | None
    """How long from now on somebody waits for it."""
    fingerprint: str
    fields: Mapping[str, str | bytes | int | float]
    """Of RQ's hash, and ours, whose names begin with rk_."""


def record(work: Work, priority: Priority, *, age_s: float, api: str = "") -> Record:
    """`age_s`: how long ago it arrived. `api`: whose clients wait for it, and nobody else."""
    arguments: dict[str, Any]
    match work:
        case Vetting():
            name, arguments = _VET, {"problem": work.problem.decode()}
        case Job():
            request = work.request.model_dump_json(exclude_defaults=True)
            name, arguments = _GRADE, {"request": request, "index": work.index, "age_s": age_s}
        case ToolCall():
            name, arguments = _RUN, {"request": work.request.model_dump_json(exclude_defaults=True), "age_s": age_s}
    job = RQJob.create(
        func=name,
        kwargs=arguments,
        id=work.id,
        connection=UNUSED,
        serializer=JSONSerializer,
        origin=f"rkgrade-{priority}",
        description=name.rpartition(".")[2],
        timeout=-1,
        status=JobStatus.QUEUED,
    )
    fields = dict(job.to_dict())
    fields["rk_memory_mb"] = -(-work.memory_bytes // _MIB)
    fields["rk_keep_s"] = work.keep_s
    fields["rk_print"] = work.fingerprint
    fields["rk_api"] = "" if work.keep_s else api
    return Record(work.id, priority, work.client, work.deadline_s, work.fingerprint, fields)


@dataclass(frozen=True, slots=True)
class Taken:
    """A job leased to this host."""

    id: str
    priority: Priority
    execution: str
    waited_s: float
    memory_mb: int
    keep_s: int
    work: Work


def taken(
    priority: str, id: str, execution: str, waited_s: float, fields: Mapping[bytes, bytes], now_s: float
) -> Taken:
    """Read a record back, at `now_s` of the monotonic clock. Raises UnreadableRecord."""
    try:
        return Taken(
            id=id,
            priority=Priority(priority),
            execution=execution,
            waited_s=waited_s,
            memory_mb=int(fields.get(b"rk_memory_mb", 0)),
            keep_s=int(fields.get(b"rk_keep_s", 0)),
            work=_work(id, fields, waited_s, now_s),
        )
    except (ValueError, KeyError, TypeError, DeserializationError) as error:
        raise UnreadableRecord(f"{type(error).__name__}: {error}") from error


def _work(id: str, fields: Mapping[bytes, bytes], waited_s: float, now_s: float) -> Work:
    job = RQJob(id, connection=UNUSED, serializer=JSONSerializer)
    job.restore(fields)
    arguments: dict[str, Any] = job.kwargs
    if job.func_name == _VET:
        return Vetting(arguments["problem"].encode(), id=id, accepted_s=now_s - waited_s)
    if job.func_name == _RUN:
        request = RunRequest.model_validate_json(arguments["request"])
        return ToolCall(request, now_s - waited_s - arguments["age_s"], id=id, accepted_s=now_s - waited_s)
    if job.func_name != _GRADE:
        raise ValueError(f"it calls {job.func_name}")
    return Job(
        request=GradeRequest.model_validate_json(arguments["request"]),
        arrived_s=now_s - waited_s - arguments["age_s"],
        index=arguments["index"],
        id=id,
        accepted_s=now_s - waited_s,
    )
