"""The stages of the miniature, one after the other: each is a program, and is begun unless it is done.

    examples, SFT, GRPO under R_2, R_4 and R_inf, averages of the first and the last, frontier, ensemble, report

A stage that was ended in its middle goes on: trainers from their last checkpoint, `rkgrade`'s commands as they always
do. What it prints is in `NAME.log`, and the seconds that it took are in `done/NAME`: where it went on, since then.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

HERE = Path(__file__).resolve().parent
RKGRADE = Path(sys.executable).with_name("rkgrade")
#: A grader on a busy machine; one that lacks something says so at once, and tries again.
READY_WITHIN_S = 180.0
REWARDS = {"r_2": "r_k:2", "r_4": "r_k:4", "r_inf": "r_inf"}


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    examples: int
    training: int
    held_out: int
    """Problems; so is `training`."""
    sft: tuple[str, ...]
    grpo: tuple[str, ...]
    samples: int
    """Of each problem, of each checkpoint."""
    alphas: tuple[str, ...]
    others: tuple[str, ...]
    """Checkpoints that are evaluated beside the averages."""
    data: tuple[str, ...] = ()
    threads: int | None = None
    """Of torch's while it trains, else one a core."""


WHOLE = Size(
    20_000, 96, 50, ("--steps", "500"), ("--steps", "30"), 16,
    ("-1", "-0.5", "-0.25", "0", "0.25", "0.5", "0.75", "1", "1.25", "1.5", "2"), ("sft", "r_4"),
)  # fmt: skip
#: The shortest programs of the family, and a model that is just large enough for them: it learns to solve most of the
#: problems, and rewards have an effect, but held-out problems differ from others in their constants alone, and are few.
#: Beside other load a model so narrow took twice as long with two threads as with one. With parameters that begin as
#: small as those of the whole version it would not learn in that time to copy a constant.
QUICK = Size(
    4_800, 16, 9,
    ("--steps", "300", "--batch", "16", "--rate", "6e-3", "--width", "64", "--layers", "2", "--spread", "0.1"),
    ("--steps", "4", "--batch", "32", "--rate", "1e-3", "--save", "1"), 8,
    ("-0.5", "0", "0.5", "1", "1.5"), ("sft",), ("--easy", "--slow-share", "0.5"), 1,
)  # fmt: skip


class Failed(Exception):
    """A stage has, and what its log ends with."""


class Stages:
    """What is done in a folder, and what is not."""

    def __init__(self, folder: Path, lock: int) -> None:
        self._folder, self._lock = folder, lock
        self._done = folder / "done"
        self._done.mkdir(exist_ok=True)
        self._needed: list[tuple[subprocess.Popen[bytes], Path]] = []
        # Threads that spin while they wait for each other take a busy machine's time from everything else. All
        # addresses are this machine's own, which no proxy reaches.
        self._environment = os.environ | {
            "NO_PROXY": "*", "no_proxy": "*",
            "OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf"),
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "PYTHONPATH": str(HERE.parents[1]), "RKGRADE_PATIENCE_S": "300",
        }  # fmt: skip

    def run(self, name: str, *command: str | Path, threads: int | None = None) -> None:
        """Unless it is done. `threads`: of torch's, else one a core. Raises Failed."""
        if (self._done / name).exists():
            return
        print(name, flush=True)
        begun_s = time.monotonic()
        log = self._folder / f"{name}.log"
        with self.started(command, log, threads) as process:
            if self._status(process):
                raise Failed(f"{name} has failed:\n{log.read_text(errors='replace')[-3000:]}")
        (self._done / name).write_text(f"{time.monotonic() - begun_s:.0f}\n")

    @contextmanager
    def needing(self, process: subprocess.Popen[bytes], log: Path) -> Iterator[None]:
        """Stages within it fail as soon as this one ends, with what its log ends with: else they would wait for it."""
        self._needed.append((process, log))
        try:
            yield
        finally:
            self._needed.pop()

    def _status(self, process: subprocess.Popen[bytes]) -> int:
        """Of a stage, once it has ended. Raises Failed."""
        while process.poll() is None:
            for needed, log in self._needed:
                if needed.poll() is not None:
                    raise Failed(f"{log.stem} has ended:\n{log.read_text(errors='replace')[-3000:]}")
            # Until any of them has ended.
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        return process.returncode

    @contextmanager
    def started(
        self, command: Sequence[str | Path], log: Path, threads: int | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Ended with the block, or with this program, however that ends; it holds the folder's lock until then."""
        environment = self._environment | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)})
        process = None
        try:
            with log.open("wb") as file, held_back():
                process = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "TERM", *command], cwd=self._folder, env=environment,
                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, pass_fds=(self._lock,),
                )  # fmt: skip
            yield process
        finally:
            if process is not None:
                if process.poll() is None:
                    process.terminate()
                process.wait()


@contextmanager
def held_back() -> Iterator[None]:
    """Signals that end this program do so after the block: within it there may be a process that nobody knows yet."""
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for one in came:
        signal.raise_signal(one)


def holders(lock: int) -> list[str]:
    """Processes that hold the lock of this file, as `PID COMMAND`: those that share the opening that it was taken by.

    Without those that may not be looked into, and those that end meanwhile.
    """
    found = []
    file = os.fstat(lock)
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda process: int(process.name)):
        with suppress(OSError):
            for opened in (process / "fd").iterdir():
                # Who has only opened it has no such line, as this process.
                if os.path.samestat(opened.stat(), file) and "FLOCK" in (process / "fdinfo" / opened.name).read_text():
                    found.append(f"{process.name} {shlex.join((process / 'cmdline').read_text().split(chr(0))[:-1])}")
                    break
    return found


@contextmanager
def grader(stages: Stages, folder: Path) -> Iterator[str]:
    """One at a free port; its address. Raises Failed."""
    log = folder / "grader.log"
    data = ("--data-dir", str(folder / "grader"))
    with stages.started([RKGRADE, "serve", "--port", "0", "--languages", "python", *data], log) as process:
        until_s = time.monotonic() + READY_WITHIN_S
        while not ((serves := re.search(r"serves on (\S+)", log.read_text())) and is_ready(serves[1])):
            if process.poll() is not None or time.monotonic() > until_s:
                raise Failed(f"the grader has ended, or is not ready:\n{log.read_text()[-3000:]}")
            time.sleep(0.1)
        with stages.needing(process, log):
            yield serves[1]


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", trust_env=False).is_success
    except httpx.TransportError:
        return False


def run(folder: Path, size: Size, trainer: str, lock: int) -> None:
    """All of it, in an order in which each has what it needs. Raises Failed."""
    stages = Stages(folder, lock)
    averages = [f"merged/alpha={alpha}" for alpha in size.alphas]
    with grader(stages, folder) as url:
        stages.run(
            "prepare", sys.executable, HERE / "prepare.py", "data", "--examples", str(size.examples),
            "--training", str(size.training), "--held-out", str(size.held_out), *size.data,
        )  # fmt: skip
        stages.run(
            "import", RKGRADE, "import", "problems", "data/training.jsonl", "--to", url, "--map", "data/map.jsonl"
        )
        stages.run("sft", trainer, HERE / "sft.py", "data/sft.jsonl", "sft", *size.sft, threads=size.threads)
        for name, reward in REWARDS.items():
            stages.run(
                name, trainer, HERE / "grpo.py", "sft", "data/training.jsonl", "data/map.jsonl", name,
                "--reward", reward, "--url", url, *size.grpo, threads=size.threads,
            )  # fmt: skip
        stages.run(
            "merge", RKGRADE, "merge", "r_2", "r_inf", "--out", "merged",
            *(f"--alpha={alpha}" for alpha in size.alphas),
        )  # fmt: skip
        stages.run(
            "frontier", RKGRADE, "frontier", "problems", "data/held-out.jsonl", "--out", "line", "--url", url,
            "--serve", serving(trainer),
            *(part for one in (*size.others, *averages) for part in ("--checkpoint", one)),
            "--api", "completions", "--template", "statement", "--top-p", "1", "--max-tokens", "112",
            "--samples", str(size.samples), "--chunk", str(size.samples),
            # How often a verdict is another one the next time is told beside the ensembles.
            "--fresh", threads=1,
        )  # fmt: skip
    pool = [f"line/alpha={alpha}" for alpha in size.alphas if -0.5 <= float(alpha) <= 1.5]
    for name, allocation in (("ensemble", "uniform"), ("ensemble-optimised", "optimised")):
        stages.run(name, RKGRADE, "ensemble", *pool, "--allocation", allocation, "--json", f"{name}.json")
    stages.run("report", sys.executable, HERE / "report.py", ".", "report.md")


def serving(trainer: str) -> str:
    """The command, as `--serve` takes it, whose server ends with what has started it, even where that is killed."""
    command = shlex.join(["setpriv", "--pdeathsig", "TERM", trainer, str(HERE / "serve.py")])
    return command.replace("{", "{{").replace("}", "}}") + " {checkpoint} {port}"


def main() -> int:
    parser = argparse.ArgumentParser(description="The paper in miniature: begun again, it goes on.")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("var/miniature"), help="for all that it makes")
    parser.add_argument("--quick", action="store_true", help="three minutes: few and easy problems")
    given = parser.parse_args()
    trainer = shutil.which(os.environ.get("MINIATURE_PYTHON", ""))
    if not trainer:
        parser.error("MINIATURE_PYTHON names no interpreter that has TRL: `run` makes one")
    # Stages run elsewhere; what it links to is no venv's.
    trainer = str(Path(trainer).absolute())
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    folder, kept = given.folder.resolve(), given.folder.resolve() / "size"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not kept.exists() and (others := sorted({one.name for one in folder.iterdir()} - {"lock"})):
            print(f"{folder}: holds what is no run's ({others[0]}): say an empty folder, or a new one", file=sys.stderr)
            return 1
        lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR)
    except OSError as error:
        print(f"{folder}: {error.strerror}", file=sys.stderr)
        return 1
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(
            f"{folder}: another run works there, or what a killed one has left:",
            *(holders(lock) or ["(none of whose processes can be seen)"]),
            sep="\n",
            file=sys.stderr,
        )
        return 1
    size = "quick" if given.quick else "whole"
    # It is empty where a run was killed just then.
    if kept.exists() and (before := kept.read_text()) not in ("", size):
        print(f"{folder}: holds a {before} run: say another folder for a {size} one", file=sys.stderr)
        return 1
    kept.write_text(size)
    try:
        run(folder, QUICK if given.quick else WHOLE, trainer, lock)
    except Failed as error:
        print(f"{error}\nWhat was done is kept in {folder}, and the same command goes on.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(folder / "report.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
