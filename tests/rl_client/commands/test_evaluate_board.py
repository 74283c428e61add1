"""How long an evaluation is said to take, where answers come in bursts."""

from __future__ import annotations

import io
import re
from datetime import timedelta

from rich.console import Console

from rl_client.commands.evaluate_board import Board
from rl_client.evaluate.rows import Grade
from service.contract import Verdict
from tests.rl_client.results import graded

GRADE = Grade.of("hash", "key", graded((1, Verdict.ACCEPTED)), 1)


def told(board: Board, console: Console) -> dict[str, str]:
    """What stands behind the bars, by what they are of."""
    with console.capture() as drawn:
        console.print(board._drawn())
    return {
        match[1]: match[2] for match in re.finditer(r"^(sampled|graded) .*? (\d\S* \S+) *$", drawn.get(), re.MULTILINE)
    }


def test_the_time_left_is_told_by_all_that_was_done() -> None:
    """Requests of five minutes, 16 samples each, 32 at once: they end within ten seconds."""
    now_s = 0.0
    console = Console(file=io.StringIO(), width=100, get_time=lambda: now_s)
    board = Board(console, None, 1)
    # A quarter was there, and is graded.
    board.planned(2048, 512, [GRADE] * 512)
    for wave in (1, 2):
        for request in range(32):
            now_s = 300 * wave + request * 10 / 31
            board.sampled(16)
            for _ in range(16):
                board.graded(GRADE)
        left_s = 305 if wave == 2 else 2 * 310
        whole = f"{512 * (wave + 1)}/2048"
        assert told(board, console) == dict.fromkeys(("sampled", "graded"), f"{whole} {timedelta(seconds=left_s)}")
    # It runs down until something comes.
    now_s += 100
    assert set(told(board, console).values()) == {"1536/2048 0:03:25"}
