"""The sandbox on cgroup v2. Where this host has v1 it gets a machine with v2, in which tests of the sandbox run.

One test here for each file of tests there, so that a report names what fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sandbox.checkers import Tokens
from sandbox.config import SandboxConfig
from sandbox.judge import Judge
from sandbox.problem import Limits, Problem, Submission
from tests import host_uids
from tests.hostile.case import program
from tests.serving import Server
from tests.vm import machine
from tests.vm.guest import LANGUAGES, PYTEST, ROOT, WITHIN_S, environment

AS_SERVICE = ROOT / "tests/vm/as_service"

#: By file: which of its tests run in the machine; all of them where none is named. Chosen for what is the kernel's to
#: count, limit and kill; the rest of the sandbox knows nothing of versions.
INSIDE: dict[str, tuple[str, ...]] = {
    "tests/sandbox/test_cgroups.py": (),
    "tests/sandbox/test_cgroups_v2.py": (),
    "tests/sandbox/test_cell.py": (
        "test_exit_status[255]",
        "test_death_by_signal[SEGV]",
        "test_memory_is_the_peak_of_this_run",
        "test_output_is_not_counted_as_memory",
        "test_memory_cannot_be_disguised_as_output_or_files[printed afterwards]",
        "test_files_on_the_scratch_disk_are_memory",
        "test_cpu_limit",
        "test_cpu_limit_of_many_processes_together",
        "test_wall_limit",
        "test_memory_limit_by_one_allocation",
        "test_memory_within_the_headroom_for_output_is_still_over_the_limit",
        "test_memory_killed_in_a_child_counts_though_the_parent_ends_well",
        "test_processes_limit_is_an_error_to_the_program",
    ),
    "tests/sandbox/test_cell_between_runs.py": ("test_what_a_run_leaves_running_ends_with_it",),
    "tests/sandbox/test_cell_ends.py": (
        "test_a_killed_warden_is_a_fault_and_the_end_of_the_cell",
        "test_a_warden_that_does_not_answer_is_ended_and_the_run_still_judged",
        "test_cancelled_in_the_middle_of_a_run",
        "test_close_leaves_no_process_group_or_descriptor[cgroups-runs_once]",
        "test_close_leaves_no_process_group_or_descriptor[cgroups-is_ended]",
        "test_close_leaves_no_process_group_or_descriptor[cgroups-is_cancelled]",
        "test_a_cell_that_cannot_start_says_why",
    ),
    "tests/sandbox/test_run.py": (
        "test_two_programs_talk_through_pipes",
        "test_each_run_is_held_to_its_own_limits",
        "test_a_fault_in_one_run_ends_the_other",
    ),
    "tests/sandbox/test_judge.py": (
        "test_a_fault_of_a_python_cell_is_tried_again",
        "test_no_cell_serves_two_submissions",
        "test_closing_a_judge_leaves_nothing",
    ),
    "tests/hostile/test_hostile.py": (
        "test_verdicts_and_nothing_left[c-busy]",
        "test_verdicts_and_nothing_left[c-few_processes]",
        "test_verdicts_and_nothing_left[c-memory]",
        "test_verdicts_and_nothing_left[python-memory]",
        "test_cancelled_in_the_middle_and_nothing_left[fork_bomb]",
    ),
}

#: Compiled out here: what computes takes 30 to 50 times as long in there.
COMPILED = ("processes.c", "memory.c")

pytestmark = [pytest.mark.jail, pytest.mark.vm, pytest.mark.timeout(WITHIN_S + 120)]


@dataclass(frozen=True, slots=True)
class Case:
    """What became of one test in the machine; `failure` is empty where it passed."""

    name: str
    failure: str


@pytest.fixture(scope="module")
def cases(image: machine.Image, grader: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Case]]:
    """What became of each test in the machine, by file."""
    control = tmp_path_factory.mktemp("machine")
    compile_programs(grader.data_dir)
    tests = [f"{file}::{name}" if name else file for file, names in INSIDE.items() for name in names or ("",)]
    ended = machine.run(
        image,
        ["/bin/sh", str(AS_SERVICE), str(ROOT), *PYTEST, "--junitxml=/ctl/results.xml", *tests],
        control,
        environment=environment(grader.data_dir),
        limit_s=WITHIN_S,
    )
    results = control / "results.xml"
    # Else no test ran: pytest knows none by one of these names, say.
    assert ended.status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), ended.output
    found: dict[str, list[Case]] = {file: [] for file in INSIDE}
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        file = case.attrib["classname"].replace(".", "/") + ".py"
        found[file].append(Case(case.attrib["name"], "\n".join(outcome.text or "" for outcome in case)))
    return found


def compile_programs(data_dir: Path) -> None:
    """Put what hostile programs compile to into the cache of a data directory."""
    config = SandboxConfig(data_dir, uid_base=host_uids.claim("vm").start, languages=frozenset(LANGUAGES))
    judge = Judge(config, slot=0, core=None)
    try:
        for name in COMPILED:
            judgement = judge.judge(Submission(Problem((), Tokens()), "c", program(name), Limits()))
            assert judgement.compile is not None
            assert judgement.compile.ok, judgement.compile.message
    finally:
        judge.close()


@pytest.mark.parametrize("file", INSIDE)
def test_on_cgroup_v2(cases: dict[str, list[Case]], file: str) -> None:
    failures = [f"{case.name}\n{case.failure}" for case in cases[file] if case.failure]
    assert not failures, "\n\n".join(failures)
    assert len(cases[file]) >= max(1, len(INSIDE[file]))
