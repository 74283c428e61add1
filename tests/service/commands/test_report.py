"""How a result is shown: a known result in, the words of the table out."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sandbox.verdicts import Verdict
from service.commands.report import by_input_size, details, headline
from service.contract import CompileRow, GradeResult, GraderInfo, GroupRow, PointRow, TestRow, Timing

GRADER = GraderInfo(version="0", sandbox="nsjail", language_version="3", secure=True)
TIMING = Timing(queue_s=0, compile_s=0, run_s=0, total_s=0)


def row(index: int, length: int, verdict: Verdict, **figures: object) -> TestRow:
    return TestRow.model_validate({"index": index, "input_length": length, "verdict": verdict, **figures})


def result(**fields: object) -> GradeResult:
    return GradeResult.model_validate(
        {
            "id": "a.py",
            "problem_id": f"sha256:{'0' * 64}",
            "language": "python",
            "taxonomy": "first_failure",
            "compile": None,
            "timing": TIMING,
            "grader": GRADER,
            **fields,
        }
    )


FAILED = result(
    verdict="time_limit",
    category="optimization_failure",
    first_failure_length=1200,
    rewards={"R_1": None, "R_2": 1, "R_3": 1, "R_4": 0, "R_inf": 0},
    groups=[
        GroupRow(k=1, tests=0, passed=0, failed=0, skipped=0),
        GroupRow(k=2, tests=2, passed=2, failed=0, skipped=0),
        GroupRow(k=3, tests=2, passed=2, failed=0, skipped=0),
        GroupRow(k=4, tests=4, passed=2, failed=2, skipped=0),
    ],
    tests=[
        row(0, 10, Verdict.ACCEPTED, cpu_s=0.002, memory_bytes=2**20),
        row(1, 99, Verdict.ACCEPTED, cpu_s=0.0114, memory_bytes=3 * 2**20),
        row(2, 1200, Verdict.TIME_LIMIT, cpu_s=1.0004, memory_bytes=5 * 2**20, message="used more than 1 s"),
        row(3, 9999, Verdict.WRONG_ANSWER, cpu_s=0.5, checker_message="token 1", stdout_tail="7\n", stderr_tail=""),
    ],
)


def test_without_control_groups_the_table_says_so_and_shows_no_memory() -> None:
    insecure = FAILED.model_copy(update={"grader": GRADER.model_copy(update={"secure": False})})
    assert "insecure: without control groups" in words(headline(insecure))[0]
    assert "insecure" not in words(headline(FAILED))[0]
    memory = [line.split() for line in words(by_input_size(insecure))[1:-1]]
    assert [line[-4] for line in memory] == ["-"] * len(memory)
    assert "MiB" not in " ".join(words(by_input_size(insecure)))
    assert "MiB" in " ".join(words(by_input_size(FAILED)))


def words(shown: Table | Text) -> list[str]:
    """The lines of what is shown, white space evened out."""
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(shown)
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def test_rows_are_powers_of_ten_that_hold_tests() -> None:
    assert words(by_input_size(FAILED)) == [
        "input length tests passed failed max cpu max memory R_k",
        "10 to 99 2 2 0.011 s 3.0 MiB R_2 = 1",
        "1,000 to 9,999 2 0 1 time_limit, 1 wrong_answer 1.000 s 5.0 MiB R_4 = 0",
        "all 4 2 R_inf = 0",
    ]


def test_the_headline_has_the_score_where_there_is_one() -> None:
    rows = [
        PointRow(group="a", scoring="min", tests=2, points=0, max_points=60.5),
        PointRow(group=None, scoring="sum", tests=1, points=12.5, max_points=39.5),
    ]
    scored = FAILED.model_copy(update={"score": 12.5, "point_groups": rows})
    assert words(headline(scored))[0].endswith(", first at input length 1,200, score 12.5 of 100")


def test_headline() -> None:
    assert words(headline(FAILED)) == ["a.py (python): time_limit, optimization_failure, first at input length 1,200"]


def test_details_are_shown_where_there_are_any() -> None:
    assert [words(text) for text in details(FAILED)] == [
        ["test 3: wrong_answer"],
        ["checker: token 1"],
        ["stdout: 7"],
    ]


def test_a_fault_of_the_grader_has_neither_category_nor_rewards() -> None:
    fault = result(
        verdict="internal_error",
        category=None,
        first_failure_length=None,
        rewards={"R_1": None, "R_inf": None},
        groups=[GroupRow(k=1, tests=1, passed=0, failed=0, skipped=0)],
        tests=[row(0, 4, Verdict.INTERNAL_ERROR)],
    )
    assert words(headline(fault)) == ["a.py (python): internal_error, no category: the grader failed"]
    assert words(by_input_size(fault))[1:] == ["0 to 9 1 0 1 internal_error R_1 = null", "all 1 0 R_inf = null"]


def test_a_compiler_s_message_is_shown() -> None:
    broken = result(
        verdict="compile_error",
        category="correctness_failure",
        first_failure_length=None,
        rewards={"R_1": 0, "R_inf": 0},
        groups=[GroupRow(k=1, tests=1, passed=0, failed=0, skipped=1)],
        tests=[row(0, 4, Verdict.SKIPPED)],
        compile=CompileRow(ok=False, cpu_s=0.1, cached=False, message="line 1: [no]\n"),
    )
    assert [words(text) for text in details(broken)] == [["line 1: [no]"]]


def test_nothing_that_a_program_printed_reaches_the_terminal_as_a_command() -> None:
    hostile = "\x1b[2A\x1b[2Kaccepted\x1b]52;c;eA==\x07\x9b31m\r\x08\u202e\té"
    failed = row(0, 1, Verdict.WRONG_ANSWER, stdout_tail=hostile, stderr_tail=hostile, checker_message=hostile)
    refused = CompileRow(ok=False, cpu_s=0, cached=False, message=hostile)
    shown = FAILED.model_copy(update={"id": hostile, "compile": refused, "tests": (failed,)})
    lines = [line for text in (headline(shown), *details(shown)) for line in words(text)]
    assert sum("accepted" in line for line in lines) >= 5
    assert all(character.isprintable() or character == "\t" for line in lines for character in line)
    assert any("\\x1b[2K" in line and "é" in line for line in lines)
