"""What `rkgrade grade --url` does: has a grader elsewhere grade programs that are here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rl_client.client import Grader
from rl_client.commands import sources
from rl_client.commands.ending import GRADER_ERROR, USAGE_ERROR, interruptible, stop
from rl_client.errors import GraderError, Refused
from service.contract import GradeRequest, GradeResult, Problem

_ITEM = re.compile(r"items\[(\d+)\]\.?")


def grade_elsewhere(
    url: str, token_file: Path | None, problem: Problem, requests: Sequence[GradeRequest]
) -> Iterator[GradeResult]:
    """The results as they end, their `index` that of the request; ends the command where there are none to be had.

    The problem of the requests is `problem`, by its id.
    """
    url = sources.grader("--url", url)
    try:
        with interruptible("ended; the grader has been told"), Grader(url, token=sources.token(token_file)) as grader:
            grader.check()
            carried = [request.model_copy(update={"problem": problem}) for request in requests]
            yield from grader.grade_batch(carried)
    except Refused as refused:
        at = _ITEM.match(refused.field or "")
        of = f"{requests[int(at[1])].id}: " if at is not None else ""
        stop(USAGE_ERROR, f"{of}{_ITEM.sub('', str(refused))}")
    except GraderError as error:
        stop(GRADER_ERROR, str(error))
