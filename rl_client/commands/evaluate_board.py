"""What an evaluation shows while it runs: how far it is, how long it will take, and the rates so far."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from rl_client.counts import counted
from rl_client.datasets.importing import Skipped
from rl_client.datasets.outputs import Output

if TYPE_CHECKING:
    from rl_client.evaluate.rows import Grade


class Board:
    """To be used as a context manager. Where stderr is no terminal it tells of rows that are skipped alone."""

    def __init__(self, console: Console, skips: Output | None, total_bytes: int) -> None:
        """`skips`: where skipped rows are written. `total_bytes`: of the rows to be read."""
        self._console = console
        self._skips = skips
        self.skips = 0
        """Rows that are no problems."""
        self._categories: Counter[str] = Counter()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _TimeLeft(),
            console=console,
        )
        self._bars: dict[str, TaskID] = {}
        self._begin("read", "problems, in bytes", total_bytes, 0)
        self._live = Live(
            get_renderable=self._drawn, console=console, transient=True, refresh_per_second=4, auto_refresh=True
        )

    def __enter__(self) -> Board:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def others(self, count: int) -> None:
        """So many completions are of problems that are not there."""
        if count:
            self._console.print(
                f"rkgrade: {counted(count, 'completion')} of problems that are not among these: left out"
            )

    def skipped(self, skipped: Skipped) -> None:
        self.skips += 1
        self._console.print(f"rkgrade: {skipped}")
        if self._skips is not None:
            self._skips.write_line(skipped.as_json())

    def read(self, done_bytes: int, tasks: int) -> None:
        self._done("read", completed=done_bytes, description=f"{counted(tasks, 'problem')}, in bytes")

    def planned(self, samples: int, sampled: int, grades: Sequence[Grade]) -> None:
        self._progress.remove_task(self._bars.pop("read"))
        self._begin("sampled", "sampled", samples, sampled)
        self._begin("graded", "graded", samples, len(grades))
        self._categories.update(map(_category, grades))

    def sampled(self, samples: int) -> None:
        self._done("sampled", advance=samples)

    def graded(self, grade: Grade) -> None:
        self._categories[_category(grade)] += 1
        self._done("graded", advance=1)

    def _begin(self, name: str, words: str, total: int, there: int) -> None:
        """`there`: what is done already, and took none of the time."""
        begun_s = self._progress.get_time()
        self._bars[name] = self._progress.add_task(
            words, total=total, completed=there, there=there, begun_s=begun_s, at_s=begun_s
        )

    def _done(self, name: str, **update: Any) -> None:
        self._progress.update(self._bars[name], at_s=self._progress.get_time(), **update)

    def _drawn(self) -> Group:
        table = Table(box=None, pad_edge=False)
        total = self._categories.total()
        for name, count in self._categories.most_common():
            table.add_row(name.replace("_", " "), f"{count:,}", f"{count / total:.1%}")
        return Group(self._progress, table)


class _TimeLeft(ProgressColumn):
    """By all that was done since its bar began. Samples come in bursts, a request's at once, and requests may take
    minutes: what the last half a minute brought, as rich has it, tells nothing.
    """

    def render(self, task: Task) -> Text:
        done, begun_s, at_s = task.completed - task.fields["there"], task.fields["begun_s"], task.fields["at_s"]
        if not done or task.total is None:
            return Text("-:--:--", style="progress.remaining")
        # As it was when something was done last, less what has passed since.
        left_s = (task.total - task.completed) * (at_s - begun_s) / done - (task.get_time() - at_s)
        return Text(str(timedelta(seconds=math.ceil(max(0.0, left_s)))), style="progress.remaining")


def _category(grade: Grade) -> str:
    return "grader's faults" if grade.category is None else grade.category
