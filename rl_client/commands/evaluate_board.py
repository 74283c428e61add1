"""What an evaluation shows while it runs: how far it is, how long it will take, and the rates so far."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

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
            TimeRemainingColumn(),
            console=console,
        )
        self._bars: dict[str, TaskID] = {"read": self._progress.add_task("problems, in bytes", total=total_bytes)}
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
            self._console.print(f"rkgrade: {count:,} completions are of problems that are not among these")

    def skipped(self, skipped: Skipped) -> None:
        self.skips += 1
        self._console.print(f"rkgrade: {skipped}")
        if self._skips is not None:
            self._skips.write_line(skipped.as_json())

    def read(self, done_bytes: int, tasks: int) -> None:
        self._progress.update(self._bars["read"], completed=done_bytes, description=f"{tasks:,} problems, in bytes")

    def planned(self, samples: int, sampled: int) -> None:
        self._progress.remove_task(self._bars.pop("read"))
        self._bars["sampled"] = self._progress.add_task("sampled", total=samples, completed=sampled)
        self._bars["graded"] = self._progress.add_task("graded", total=samples)

    def sampled(self, samples: int) -> None:
        self._progress.advance(self._bars["sampled"], samples)

    def graded(self, grade: Grade) -> None:
        self._categories["grader's faults" if grade.category is None else grade.category] += 1
        self._progress.advance(self._bars["graded"])

    def _drawn(self) -> Group:
        table = Table(box=None, pad_edge=False)
        total = self._categories.total()
        for name, count in self._categories.most_common():
            table.add_row(name.replace("_", " "), f"{count:,}", f"{count / total:.1%}")
        return Group(self._progress, table)
