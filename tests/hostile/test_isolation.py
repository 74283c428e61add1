"""What a program finds around itself: one probe reports, each fact is held against the design."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from sandbox import nsjail
from sandbox.checkers.base import CheckerOutcome
from sandbox.config import SandboxConfig
from sandbox.judge import UIDS_PER_SLOT, Judge
from sandbox.languages import REGISTRY
from sandbox.problem import Problem, Submission, Test
from sandbox.stdin import Stdin
from sandbox.verdicts import Verdict
from tests.hostile.case import PYTHONS, ROOMY, program

pytestmark = pytest.mark.jail

SLOT = 1

Report = dict[str, Any]


class Capture:
    """A checker that keeps what was printed."""

    def __init__(self) -> None:
        self.outputs: list[bytes] = []

    def check(self, output: memoryview, expected: bytes) -> CheckerOutcome:
        self.outputs.append(bytes(output))
        return CheckerOutcome(Verdict.ACCEPTED)


@pytest.fixture(scope="module")
def core() -> int:
    return min(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def judge(config: SandboxConfig, core: int) -> Iterator[Judge]:
    cores = os.sched_getaffinity(0)
    judge = Judge(config, slot=SLOT, core=core)
    try:
        yield judge
    finally:
        judge.close()
        os.sched_setaffinity(0, cores)


def outputs(judge: Judge, language: str, source: bytes, runs: int) -> list[bytes]:
    capture = Capture()
    tests = tuple(Test(index, None, index, Stdin(b""), b"") for index in range(runs))
    judgement = judge.judge(Submission(Problem(tests, capture), language, source, ROOMY))
    assert [result.verdict for result in judgement.tests] == [Verdict.ACCEPTED] * runs, judgement.tests[0].stderr_tail
    return capture.outputs


@pytest.fixture(scope="module", params=PYTHONS)
def report(request: pytest.FixtureRequest, judge: Judge) -> Report:
    """The second run's: by then the cell has seen another."""
    report: Report = json.loads(outputs(judge, request.param, program("probe.py"), runs=2)[1])
    return report


def test_its_user_is_nobody_here_and_holds_nothing(report: Report) -> None:
    assert report["uids"] == [nsjail.PROGRAM_ID] * 3
    assert report["gids"] == [nsjail.PROGRAM_ID] * 3
    assert report["groups"] == []
    capabilities = {name: report["status"][name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert capabilities == dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapAmb"), "0000000000000000")


def test_the_kernel_filters_its_calls_and_grants_no_privileges(report: Report) -> None:
    assert report["status"]["NoNewPrivs"] == "1"
    assert report["status"]["Seccomp"] == "2"


def test_its_uid_belongs_to_no_account_of_the_host(report: Report, config: SandboxConfig) -> None:
    outside = {host_id for inside, host_id, _ in report["uid_map"] if inside == nsjail.PROGRAM_ID}
    assert len(outside) == 1
    first = config.uid_base + SLOT * UIDS_PER_SLOT
    assert outside <= set(range(first, first + UIDS_PER_SLOT))
    assert sorted(inside for inside, _, _ in report["uid_map"]) == [0, nsjail.PROGRAM_ID]
    assert all(count == 1 for _, _, count in report["uid_map"])


def test_it_has_three_descriptors(report: Report) -> None:
    assert report["descriptors"] == [0, 1, 2]
    assert report["descriptor_rights"][0] == "read"


def test_it_gets_no_signal_state_of_the_warden(report: Report) -> None:
    assert report["status"]["SigBlk"] == "0000000000000000"
    assert report["status"]["SigPnd"] == "0000000000000000"
    assert report["status"]["ShdPnd"] == "0000000000000000"


def test_its_environment_is_what_the_jail_says(report: Report) -> None:
    # The interpreter coerces no locale here, so nothing is added to what was set.
    assert report["environment"] == nsjail.ENVIRONMENT


def test_it_sees_itself_and_the_warden(report: Report) -> None:
    assert report["processes"] == 2
    assert report["parent"] == 1
    assert report["session_leader"]


def test_there_is_no_network(report: Report) -> None:
    assert report["interfaces"] in ([], ["lo"])
    assert report["interfaces_up"] == []
    assert report["routes"] == 0


def test_its_root_is_read_only_but_for_the_scratch_disks(report: Report) -> None:
    assert report["writable_directories"] == ["/box", "/tmp"]
    writable = {mount for mount, options in report["mounts"].items() if "rw" in options}
    # The warden's own disks are open to the warden alone; nsjail mounts devices by binding them.
    assert writable <= {"/box", "/tmp", "/prog", "/dev", *(f"/dev/{name}" for name in nsjail.DEVICES)}
    assert "ro" in report["mounts"]["/"]


def test_its_devices_are_the_five(report: Report) -> None:
    links = ["fd", "shm", "stderr", "stdin", "stdout"]
    assert report["devices"] == sorted([*nsjail.DEVICES, *links])


def test_its_root_holds_no_more_than_was_put_there(report: Report) -> None:
    allowed = {*nsjail.MERGED_USR, "usr", "etc", "proc", "dev", "tmp", "box", "prog", "rkgrade"}
    # Configuration and packages that languages list as their own; shown where they are installed.
    listed = [Path(path).parts[1:3] for language in REGISTRY.values() for path in language.host_paths]
    foreign = (
        set(report["root"]) - allowed - {top for top, _ in listed} - {Path(name).parts[1] for name in nsjail.READ_ONLY}
    )
    assert {name for name in foreign if not name.startswith("rkgrade-")} == set()
    configuration = {"alternatives", "ld.so.cache", "localtime", "passwd", "group"}
    unlisted = set(report["etc"]) - configuration
    assert [name for name in unlisted if not any(fnmatch(name, below) for top, below in listed if top == "etc")] == []


def test_proc_is_its_own_and_cannot_be_written(report: Report) -> None:
    assert report["writable_proc"] == []
    assert report["boot_command_line_of_warden"] in ("", None) or "rkgrade" in report["boot_command_line_of_warden"]


def test_it_may_run_on_the_judges_core_only(report: Report, core: int) -> None:
    assert report["cores"] == [core]
    assert report["nice"] == 0


def test_the_host_takes_its_memory_before_the_graders(report: Report) -> None:
    assert report["oom_score_adjustment"] == 500


def test_its_limits_are_hard(report: Report) -> None:
    limits = report["limits"]
    assert all(soft == hard for soft, hard in limits.values())
    # One byte: with none at all, the kernel would still hand a core to a handler that the host may have set.
    assert limits["RLIMIT_CORE"] == [1, 1]
    assert limits["RLIMIT_FSIZE"] == [ROOMY.output_bytes + 1] * 2
    assert limits["RLIMIT_STACK"] == [ROOMY.memory_bytes] * 2


def test_names_of_the_host_do_not_show(report: Report) -> None:
    assert report["hostname"] != os.uname().nodename
    assert report["working_directory"] == "/box"


def test_hashes_repeat_and_random_numbers_do_not(judge: Judge) -> None:
    source = b"import random\nprint(hash('some words'), random.random())\n"
    rows = [line.split() for language in PYTHONS for line in outputs(judge, language, source, runs=3)]
    assert len({row[0] for row in rows}) == 1
    assert len({row[1] for row in rows}) == len(rows)


def test_both_ways_to_run_python_show_the_same_face(judge: Judge) -> None:
    faces = [json.loads(outputs(judge, language, program("face.py"), runs=1)[0]) for language in PYTHONS]
    assert faces[0] == faces[1]
