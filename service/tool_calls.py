"""A tool call, start to end: from the request that came over the wire to the result that goes back.

Knows nothing of HTTP, queues or other workers; `failed` knows no judge, so that the API can report a fault itself.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from sandbox.errors import GraderFault
from sandbox.problem import CompileResult, Limits, TestResult
from sandbox.single import Remains, SingleRun
from sandbox.tally import Tally
from sandbox.verdicts import Verdict
from service import contract
from service.engines.base import Ran, Summary, ToolCall
from service.results import compile_cache, compile_row

if TYPE_CHECKING:
    from sandbox.judge import Judge

_NOTHING: Final = Remains(b"", b"", False, {}, 0)

#: What a run without a checker can come to, beside ending well.
_STATUSES: Final[dict[Verdict, contract.RunStatus]] = {
    Verdict.TIME_LIMIT: Verdict.TIME_LIMIT,
    Verdict.MEMORY_LIMIT: Verdict.MEMORY_LIMIT,
    Verdict.OUTPUT_LIMIT: Verdict.OUTPUT_LIMIT,
    Verdict.IDLE: Verdict.IDLE,
    Verdict.RUNTIME_ERROR: Verdict.RUNTIME_ERROR,
    Verdict.INTERNAL_ERROR: Verdict.INTERNAL_ERROR,
}


def run(judge: Judge, call: ToolCall, *, grader: contract.GraderInfo, queue_s: float, cancel_fd: int | None) -> Ran:
    """Blocks until the program has ended.

    Raises UnknownLanguage, and Cancelled as soon as `cancel_fd` is readable.
    """
    request, limits = call.request, call.request.limits
    asked = SingleRun(
        request.language,
        request.source.encode(),
        request.stdin.encode(),
        {path: content.data for path, content in request.files.items()},
        Limits(
            cpu_s=limits.cpu_s,
            wall_s=limits.wall_s,
            memory_bytes=limits.memory_mb * 2**20,
            output_bytes=limits.output_mb * 2**20,
            processes=limits.processes,
        ),
        limits.compile_cpu_s,
        request.fetch,
    )
    try:
        single = judge.run(asked, cancel_fd=cancel_fd)
    except GraderFault as fault:
        return failed(call, str(fault), grader=grader, queue_s=queue_s, tally=judge.take_tally())
    judgement = single.judgement
    return _ran(
        call,
        judgement.tests[0] if judgement.tests else None,
        grader=grader,
        tally=judge.take_tally(),
        compiled=judgement.compile,
        remains=single.remains,
        times_s=(queue_s, judgement.compile_s, judgement.run_s),
    )


def failed(
    call: ToolCall,
    message: str,
    *,
    grader: contract.GraderInfo,
    queue_s: float | None = None,
    tally: Tally | None = None,
) -> Ran:
    """The result of a call that the grader itself failed at."""
    test = TestResult(0, None, 0, Verdict.INTERNAL_ERROR, message=message)
    waited_s = time.monotonic() - call.accepted_s if queue_s is None else queue_s
    return _ran(call, test, grader=grader, tally=tally or Tally(), times_s=(waited_s, 0.0, 0.0))


def _ran(
    call: ToolCall,
    test: TestResult | None,
    *,
    grader: contract.GraderInfo,
    tally: Tally,
    times_s: tuple[float, float, float],
    compiled: CompileResult | None = None,
    remains: Remains | None = None,
) -> Ran:
    """`test`: what the run came to; None where compiling failed. `times_s`: of the queue, compiling and running."""
    status = _status(test)
    row = test or TestResult(0, None, 0, Verdict.SKIPPED, message="it does not compile")
    left = remains or _NOTHING
    queue_s, compile_s, run_s = times_s
    timing = contract.Timing(
        queue_s=queue_s, compile_s=compile_s, run_s=run_s, total_s=time.monotonic() - call.arrived_s
    )
    result = contract.RunResult(
        status=status,
        message=row.message,
        stdout=left.stdout.decode("utf-8", "replace"),
        stderr=left.stderr.decode("utf-8", "replace"),
        truncated=left.truncated,
        exit_code=row.exit_code,
        signal=row.signal,
        cpu_s=row.cpu_s,
        wall_s=row.wall_s,
        memory_bytes=row.memory_bytes,
        files={path: contract.FileResult.of(data) for path, data in left.files.items()},
        files_left_out=left.left_out,
        compile=compile_row(compiled),
        language=call.request.language,
        timing=timing,
        grader=grader,
    )
    summary = Summary(
        language=call.request.language,
        verdict=status,
        category=None,
        tests={},
        compile_cache=compile_cache(compiled),
        provoked=0,
        reruns=row.reruns,
        queue_s=queue_s,
        compile_s=compile_s,
        run_s=run_s,
        cells_started=tally.cells_started,
        cpu_s=row.cpu_s or 0.0,
        wall_s=row.wall_s or 0.0,
        oom_kills=tally.oom_kills,
        host_oom_kills=tally.host_oom_kills,
        fault=row.message if status == Verdict.INTERNAL_ERROR else "",
        sandbox_faults=dict(tally.faults),
    )
    return Ran(result.model_dump_json().encode(), summary)


def _status(test: TestResult | None) -> contract.RunStatus:
    if test is None:
        return "compile_error"
    return "ok" if test.verdict is Verdict.ACCEPTED else _STATUSES[test.verdict]
