"""`rkgrade grade` as a user runs it: what it prints, how it exits, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from sandbox import cgroups
from tests.service.commands.conftest import COMMAND, Run
from tests.service.commands.example import ACCEPTED, EXAMPLE, SLOW, WRONG, results


@pytest.mark.jail
def test_the_example_s_programs_come_to_what_their_folders_say(rkgrade: Run) -> None:
    done = rkgrade("grade", EXAMPLE, ACCEPTED, SLOW, WRONG, "--json")

    assert (done.returncode, done.stderr) == (1, "")
    assert [(r.id, r.verdict, r.category, r.first_failure_length, r.rewards) for r in results(done.stdout)] == [
        (str(ACCEPTED), "accepted", "correct", None, rewards(1, 1, 1, 1, 1, 1)),
        (str(SLOW), "time_limit", "optimization_failure", 87303, rewards(1, 1, 1, 1, 0, 0)),
        (str(WRONG), "wrong_answer", "correctness_failure", 175, rewards(1, 1, 0, 0, 0, 0)),
    ]


def rewards(*values: int) -> dict[str, int]:
    return dict(zip(("R_1", "R_2", "R_3", "R_4", "R_5", "R_inf"), values, strict=True))


@pytest.mark.jail
def test_an_accepted_program_exits_with_0_and_its_table(rkgrade: Run) -> None:
    done = rkgrade("grade", EXAMPLE, ACCEPTED)

    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == f"{ACCEPTED} (python): accepted, correct"
    assert [line.split()[:4] for line in lines[2:]] == [
        ["0", "to", "9", "1"],
        ["10", "to", "99", "4"],
        ["100", "to", "999", "2"],
        ["1,000", "to", "9,999", "2"],
        ["10,000", "to", "99,999", "2"],
        ["all", "11", "11", "R_inf"],
    ]


ANY_ORDER = """
import sys
wanted, got = (sorted(text.split()) for text in (open(sys.argv[2]).read(), sys.stdin.read()))
sys.exit(42 if got == wanted else 43)
"""


@pytest.fixture
def package(tmp_path: Path) -> Callable[[str], Path]:
    """A Kattis package with such an output validator in Python."""

    def write(validator: str) -> Path:
        files = {
            "problem.yaml": "name: Numbers\nvalidation: custom\n",
            "data/secret/1.in": "3 2 1\n",
            "data/secret/1.ans": "3\n2\n1\n",
            "output_validators/check.py": validator,
        }
        for name, content in files.items():
            path = tmp_path / "package" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return tmp_path / "package"

    return write


@pytest.mark.jail
def test_a_package_with_a_validator_of_its_own_is_judged_by_it(
    rkgrade: Run, program: Callable[[str, str], Path], package: Callable[[str], Path]
) -> None:
    other_order = program("other_order.py", "print(*sorted(input().split()))\n")
    other_numbers = program("other_numbers.py", "print(3, 3, 3)\n")

    done = rkgrade("grade", package(ANY_ORDER), other_order, other_numbers, "--json")

    assert (done.returncode, done.stderr) == (1, "")
    assert [result.verdict for result in results(done.stdout)] == ["accepted", "wrong_answer"]


@pytest.mark.jail
def test_a_validator_that_does_not_compile_is_the_package_s_fault(rkgrade: Run, package: Callable[[str], Path]) -> None:
    done = rkgrade("grade", package("def f(:\n"), ACCEPTED)

    assert (done.returncode, done.stdout) == (2, "")
    assert "does not compile" in done.stderr
    assert "SyntaxError" in done.stderr


@pytest.mark.jail
def test_stop_skips_what_lies_behind_the_first_failure(rkgrade: Run) -> None:
    done = rkgrade("grade", EXAMPLE, WRONG, "--json", "--stop", "first_failure")

    (result,) = results(done.stdout)
    assert [test.verdict for test in sorted(result.tests, key=lambda test: test.input_length)] == [
        *["accepted"] * 5,
        "wrong_answer",
        *["skipped"] * 5,
    ]


@pytest.mark.jail
def test_taxonomy_and_time_factor_reach_the_judge(rkgrade: Run) -> None:
    done = rkgrade("grade", EXAMPLE, WRONG, "--json", "--taxonomy", "any_wrong", "--time-factor", "0.5")

    (result,) = results(done.stdout)
    assert (result.taxonomy, result.category) == ("any_wrong", "correctness_failure")


@pytest.mark.jail
def test_detail_shows_what_failing_tests_printed(rkgrade: Run, program: Callable[[str, str], Path]) -> None:
    path = program("loud.py", "import sys\nprint('forty-two')\nprint('[oops]', file=sys.stderr)\n")
    done = rkgrade("grade", EXAMPLE, path, "--detail", "outputs")

    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines.count("stdout: forty-two") == 11
    assert lines.count("stderr: [oops]") == 11


@pytest.mark.jail
def test_a_program_that_does_not_compile_shows_the_compiler_s_words(
    rkgrade: Run, program: Callable[[str, str], Path]
) -> None:
    done = rkgrade("grade", EXAMPLE, program("broken.c", "int main(void) { return nothing; }\n"))

    assert done.returncode == 1
    assert "compile_error, correctness_failure" in done.stdout
    assert "‘nothing’ undeclared" in done.stdout or "'nothing' undeclared" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", ACCEPTED], "nowhere: no such directory"),
        ([EXAMPLE / "data", ACCEPTED], "problem.yaml: missing, so this is no Kattis problem package"),
        ([EXAMPLE, "nothing.py"], "nothing.py: No such file or directory"),
        ([EXAMPLE, EXAMPLE / "problem.yaml"], "the name does not tell the language: say it with --language"),
        ([EXAMPLE, ACCEPTED, "--language", "cobol"], "unknown language 'cobol'"),
        ([EXAMPLE, ACCEPTED, "--time-factor", "0"], "--time-factor: Input should be greater than or equal to 0.01"),
        (
            [EXAMPLE, ACCEPTED, "--stop", "first_failure", "--taxonomy", "strict"],
            "--taxonomy: The rule `strict` needs every test to be run",
        ),
        ([EXAMPLE, ACCEPTED, "--taxonomy", "vibes"], "'vibes' is not one of"),
        ([EXAMPLE], "Missing argument 'PROGRAM...'"),
    ],
)
def test_what_cannot_be_followed_exits_with_2_and_says_why(
    rkgrade: Run, arguments: list[str | Path], message: str
) -> None:
    done = rkgrade("grade", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.jail
def test_limits_that_come_to_too_much_exit_with_2(rkgrade: Run, tmp_path: Path) -> None:
    for name in ("problem.yaml", "data/secret/1.in", "data/secret/1.ans", ".timelimit"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("200\n" if name == ".timelimit" else "")

    done = rkgrade("grade", tmp_path, ACCEPTED, "--time-factor", "2")

    assert (done.returncode, done.stdout) == (2, "")
    assert "the limit cpu_s comes to more than is allowed" in done.stderr


def test_a_program_that_is_not_utf_8_exits_with_2(rkgrade: Run, tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"# caf\xe9\n")

    done = rkgrade("grade", EXAMPLE, path)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path}: not UTF-8: invalid continuation byte at byte 5" in done.stderr


@contextmanager
def sleeping(
    environment: Mapping[str, str], program: Callable[[str, str], Path], copies: int
) -> Iterator[subprocess.Popen[str]]:
    """The command, grading programs that sleep; yields once each judge has a cell."""
    path = program("sleeper.py", "import time\ntime.sleep(60)\n")
    command = [*COMMAND, "grade", str(EXAMPLE), *[str(path)] * copies, "--json", "--time-factor", "60"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            wait_until(lambda: len(cells(judges(process))) >= min(copies, len(os.sched_getaffinity(0))))
            yield process
        finally:
            process.kill()


def judges(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Forked from the command, so known by its command line; compilers that look at the host are not."""
    return [one for one in children(process.pid) if command_line(one) == process.args]


def cells(judges: list[psutil.Process]) -> list[psutil.Process]:
    return [child for judge in judges for child in children(judge.pid)]


def children(pid: int) -> list[psutil.Process]:
    # Any of them may end while it is looked at.
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children()
    return []


def command_line(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def wait_until(condition: Callable[[], bool], deadline_s: float = 60) -> None:
    until = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < until, "the deadline passed"
        time.sleep(0.02)


def groups_of(pids: list[int]) -> list[Path]:
    owners = {f"-{pid}-" for pid in pids}
    return [path for path in cgroups.owned_directories(cgroups.here()) if any(o in path.name for o in owners)]


@pytest.mark.jail
def test_a_full_disk_ends_with_a_sentence(environment: Mapping[str, str], tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=755", "tmpfs", tmp_path], check=True)
    try:
        done = subprocess.run(
            [*COMMAND, "grade", EXAMPLE, ACCEPTED],
            env={**environment, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert (done.returncode, done.stdout) == (3, "")
    [line] = done.stderr.splitlines()
    assert "No space left on device" in line


@pytest.mark.jail
@pytest.mark.parametrize(
    ("flags", "code"), [(("grade", "--json", EXAMPLE, ACCEPTED), 2), (("import", "kattis", EXAMPLE), 2)]
)
def test_a_full_disk_behind_stdout_ends_with_a_sentence(
    environment: Mapping[str, str], flags: tuple[str | Path, ...], code: int
) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *flags], env=environment, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert done.returncode == code
    [line] = done.stderr.splitlines()
    assert "No space left on device" in line


@pytest.mark.jail
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all_that_runs_and_leaves_nothing(
    environment: Mapping[str, str], program: Callable[[str, str], Path], number: signal.Signals, code: int
) -> None:
    with sleeping(environment, program, copies=3) as process:
        running = judges(process)
        running += cells(running)
        process.send_signal(number)
        stdout, _ = process.communicate(timeout=30)

    assert (process.returncode, stdout) == (code, "")
    assert [one for one in running if one.is_running()] == []
    assert groups_of([one.pid for one in running]) == []
    assert list(Path(environment["TMPDIR"]).iterdir()) == []


@pytest.mark.jail
def test_judges_end_with_a_command_that_was_killed(
    environment: Mapping[str, str], program: Callable[[str, str], Path]
) -> None:
    with sleeping(environment, program, copies=2) as process:
        running = judges(process)
        running += cells(running)
        process.kill()
        process.communicate(timeout=30)

    wait_until(lambda: not any(one.is_running() for one in running))
    wait_until(lambda: groups_of([one.pid for one in running]) == [])
    for left in Path(environment["TMPDIR"]).iterdir():
        # Nobody was left to remove the problem's copy.
        for path in sorted(left.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        left.rmdir()


@pytest.mark.jail
def test_a_judge_that_dies_is_the_grader_s_fault_and_exits_with_3(
    environment: Mapping[str, str], program: Callable[[str, str], Path]
) -> None:
    with sleeping(environment, program, copies=1) as process:
        (judge,) = judges(process)
        judge.kill()
        stdout, _ = process.communicate(timeout=30)

    (result,) = results(stdout)
    assert process.returncode == 3
    assert (result.verdict, result.category, set(result.rewards.values())) == ("internal_error", None, {None})


@pytest.mark.jail
def test_more_programs_than_cores_all_come_back_in_order(rkgrade: Run, program: Callable[[str, str], Path]) -> None:
    paths = [program(f"{number}.py", f"print({number})\n") for number in range(7)]
    done = rkgrade("grade", EXAMPLE, *paths, "--json", "--workers", "1")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [str(path) for path in paths]
