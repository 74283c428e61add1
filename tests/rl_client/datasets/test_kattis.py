"""Reading Kattis packages: what each setting of a package turns into, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_client.datasets.base import DatasetError
from rl_client.datasets.kattis import read_package
from service.contract import (
    ExactChecker,
    InteractiveProblem,
    InteractiveTest,
    KattisChecker,
    KattisInteractor,
    ProblemLimits,
    StdioProblem,
    StdioTest,
    TokensChecker,
)

MINIMAL = {
    "problem.yaml": "name: Sum\n",
    "data/sample/1.in": "1 2\n",
    "data/sample/1.ans": "3\n",
    "data/secret/01.in": "4 5\n",
    "data/secret/01.ans": "9\n",
}


def write_package(directory: Path, files: dict[str, str | bytes | None]) -> Path:
    """A minimal package with `files` put over it; None leaves a file out."""
    for name, content in ({**MINIMAL, **files}).items():
        if content is not None:
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return directory


def test_a_minimal_package_is_read_whole(tmp_path: Path) -> None:
    assert read_package(write_package(tmp_path, {})) == StdioProblem(
        kind="stdio",
        tests=(
            StdioTest(input="1 2\n", output="3\n", name="sample/1"),
            StdioTest(input="4 5\n", output="9\n", name="secret/01"),
        ),
        checker=TokensChecker(type="tokens", case_sensitive=False),
        limits=ProblemLimits(cpu_s=2.0, memory_mb=256),
    )


def test_tests_are_read_recursively_samples_first_in_lexicographic_order(tmp_path: Path) -> None:
    files: dict[str, str | bytes | None] = {}
    for name in ("secret/2/b", "secret/2/a", "secret/10", "sample/2"):
        files |= {f"data/{name}.in": "", f"data/{name}.ans": ""}

    problem = read_package(write_package(tmp_path, files))

    assert [test.name for test in problem.tests] == [
        "sample/1",
        "sample/2",
        "secret/01",
        "secret/10",
        "secret/2/a",
        "secret/2/b",
    ]


def test_other_files_beside_the_tests_are_left_alone(tmp_path: Path) -> None:
    files: dict[str, str | bytes | None] = {
        "data/secret/01.hint": "h",
        "data/secret/01.desc": "d",
        "data/x.png": b"\x89",
    }
    assert len(read_package(write_package(tmp_path, files)).tests) == 2


def test_test_data_keeps_every_byte(tmp_path: Path) -> None:
    text = "\ufeffa\r\nb\rc\x00 \u00e9\n\n"
    package = write_package(tmp_path, {"data/secret/01.in": text, "data/secret/01.ans": text})
    test = read_package(package).tests[1]
    assert (test.input, test.output) == (text, text)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({".timelimit": "6\n"}, ProblemLimits(cpu_s=6)),
        ({".timelimit": "1.5"}, ProblemLimits(cpu_s=1.5)),
        ({"problem.yaml": "limits:\n  time_multiplier: 2.5\n  time_safety_margin: 2\n"}, ProblemLimits()),
        (
            {"problem.yaml": "limits:\n  memory: 1024\n  output: 8\n"},
            ProblemLimits(memory_mb=1024, output_mb=8),
        ),
        (
            {"problem.yaml": "problem_format_version: 2025-09\nlimits: {time_limit: 3.5, memory: 512}\n"},
            ProblemLimits(cpu_s=3.5, memory_mb=512),
        ),
        ({"problem.yaml": "limits: {time_limit: 3}\n", ".timelimit": "1"}, ProblemLimits(cpu_s=3)),
        ({"problem.yaml": ""}, ProblemLimits()),
    ],
)
def test_limits(tmp_path: Path, files: dict[str, str | bytes | None], expected: ProblemLimits) -> None:
    assert read_package(write_package(tmp_path, files)).limits == expected


def tokens(
    *, case_sensitive: bool = False, absolute: float | None = None, relative: float | None = None
) -> TokensChecker:
    return TokensChecker(type="tokens", case_sensitive=case_sensitive, float_absolute=absolute, float_relative=relative)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", tokens()),
        ("case_sensitive", tokens(case_sensitive=True)),
        ("float_tolerance 1e-6", tokens(absolute=1e-6, relative=1e-6)),
        ("float_absolute_tolerance 0.01", tokens(absolute=0.01)),
        ("case_sensitive float_relative_tolerance 1e-9", tokens(case_sensitive=True, relative=1e-9)),
        ("case_sensitive space_change_sensitive", ExactChecker(type="exact")),
    ],
)
def test_validator_flags(tmp_path: Path, flags: str, expected: TokensChecker | ExactChecker) -> None:
    """The same flags mean the same wherever a version of the format lets them stand."""
    in_group = f"output_validator_args: [{', '.join(flags.split())}]\n"
    packages: list[dict[str, str | bytes | None]] = [
        {"problem.yaml": f"validation: default\nvalidator_flags: {flags}\n"},
        {"data/testdata.yaml": f"output_validator_flags: {flags}\n"},
        {
            "problem.yaml": "problem_format_version: 2025-09\n",
            "data/sample/test_group.yaml": in_group,
            "data/secret/test_group.yaml": in_group,
        },
        {
            "problem.yaml": "problem_format_version: 2025-09\n",
            "data/sample/1.yaml": in_group,
            "data/secret/01.yaml": in_group,
        },
    ]
    for number, files in enumerate(packages):
        assert read_package(write_package(tmp_path / str(number), files)).checker == expected


NEW = "problem_format_version: 2025-09\n"

PYTHON, CPP = "import sys\nsys.exit(42)\n", "int main() { return 42; }\n"


def test_a_validator_in_one_file_is_the_checker_with_its_flags(tmp_path: Path) -> None:
    files: dict[str, str | bytes | None] = {
        "problem.yaml": "validation: custom\nvalidator_flags: --least 3\n",
        "output_validators/check.py": PYTHON,
    }
    problem = read_package(write_package(tmp_path, files))
    assert isinstance(problem, StdioProblem)
    assert problem.checker == KattisChecker(type="kattis", language="python", source=PYTHON, flags=("--least", "3"))


@pytest.mark.parametrize(
    ("config", "folder"),
    [
        ("validation: custom score\n", "output_validators/check"),
        (NEW, "output_validator"),
        ("problem_format_version: 2023-07-draft\n", "output_validators/check"),
    ],
)
def test_a_validator_in_several_files_is_the_checker(tmp_path: Path, config: str, folder: str) -> None:
    files: dict[str, str | bytes | None] = {
        "problem.yaml": config,
        f"{folder}/check.cpp": CPP,
        f"{folder}/lib.c": "int x;\n",
        f"{folder}/validate.h": "int x;\n",
        f"{folder}/.hidden": "x",
    }
    problem = read_package(write_package(tmp_path, files))
    assert isinstance(problem, StdioProblem)
    assert problem.checker == KattisChecker(
        type="kattis",
        language="cpp",
        files={"check.cpp": CPP, "lib.c": "int x;\n", "validate.h": "int x;\n"},
    )


@pytest.mark.parametrize(
    ("config", "validator"),
    [
        ("validation: custom interactive\n", "output_validators/talk.py"),
        (f"{NEW}type: interactive\n", "output_validator/talk.py"),
    ],
)
def test_an_interactive_validator_is_the_interactor(tmp_path: Path, config: str, validator: str) -> None:
    problem = read_package(write_package(tmp_path, {"problem.yaml": config, validator: PYTHON}))
    assert problem == InteractiveProblem(
        kind="interactive",
        tests=(
            InteractiveTest(input="1 2\n", output="3\n", name="sample/1"),
            InteractiveTest(input="4 5\n", output="9\n", name="secret/01"),
        ),
        interactor=KattisInteractor(type="kattis", language="python", source=PYTHON),
    )


@pytest.mark.parametrize(
    ("config", "passes"),
    [
        (f"{NEW}type: multi-pass\n", 2),
        (f"{NEW}type: [pass-fail, multi-pass]\nlimits: {{validation_passes: 5}}\n", 5),
        (f"{NEW}type: [interactive, multi-pass]\n", 2),
        ("validation: custom multi-pass\nlimits: {validation_passes: 3}\n", 3),
        ("validation: custom interactive multi-pass\n", 2),
    ],
)
def test_problems_of_several_passes(tmp_path: Path, config: str, passes: int) -> None:
    folder = "output_validator" if NEW in config else "output_validators"
    files: dict[str, str | bytes | None] = {"problem.yaml": config, f"{folder}/again.py": PYTHON}
    problem = read_package(write_package(tmp_path, files))
    assert isinstance(problem, StdioProblem | InteractiveProblem)
    assert problem.passes == passes


def test_a_validator_may_not_lead_out_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("x")
    package = write_package(tmp_path / "package", {"problem.yaml": "validation: custom\n"})
    (package / "output_validators").mkdir()
    (package / "output_validators/check.py").symlink_to(tmp_path / "secret.py")
    with pytest.raises(DatasetError, match="links to a file outside the package"):
        read_package(package)


def test_an_unused_validator_of_a_legacy_package_does_not_matter(tmp_path: Path) -> None:
    package = write_package(tmp_path, {"output_validators/check.py": "", "problem.yaml": "validation: default\n"})
    assert read_package(package).checker == tokens()


@pytest.mark.parametrize(
    ("files", "at_fault", "reason"),
    [
        ({"problem.yaml": None}, "problem.yaml", "missing, so this is no Kattis problem package"),
        (
            {"problem.yaml": "a: b: c\n"},
            "problem.yaml",
            "not YAML: mapping values are not allowed here in line 1",
        ),
        ({"problem.yaml": "- a\n"}, "problem.yaml", "must hold a map of settings"),
        ({"problem.yaml": b"name: \xff\n"}, "problem.yaml", "not UTF-8: invalid start byte at byte 6"),
        ({"problem.yaml": "limits: 3\n"}, "problem.yaml", "limits must be a map"),
        (
            {"problem.yaml": "limits: {memory: much}\n"},
            "problem.yaml",
            "memory_mb: Input should be a valid integer",
        ),
        (
            {"problem.yaml": "limits: {time_limit: 0}\n"},
            "problem.yaml",
            "cpu_s: Input should be greater than",
        ),
        ({".timelimit": "soon\n"}, ".timelimit", "must hold a number of seconds, not 'soon'"),
        ({".timelimit": "inf\n"}, ".timelimit", "cpu_s: Input should be a finite number"),
        (
            {"problem.yaml": "validation: custom\n"},
            "output_validators",
            "holds 0 programs; exactly one is supported",
        ),
        (
            {"problem.yaml": "validation: custom\n", "output_validators/a.py": "", "output_validators/b.py": ""},
            "output_validators",
            "holds 2 programs; exactly one is supported",
        ),
        ({"problem.yaml": "validation: costum\n"}, "problem.yaml", "unknown validation 'costum'"),
        (
            {"problem.yaml": "validation: custom\n", "output_validators/check/build": ""},
            "output_validators/check/build",
            "no source in a language that validators are taken in",
        ),
        (
            {"problem.yaml": "validation: custom\n", "output_validators/check/lib/a.py": ""},
            "output_validators/check/lib",
            "programs with folders of their own are not supported",
        ),
        (
            {
                "problem.yaml": "validation: custom\n",
                "output_validators/check/a.py": "",
                "output_validators/check/b.java": "",
            },
            "output_validators/check",
            "holds sources in java and python",
        ),
        (
            {"problem.yaml": "validation: custom\n", "output_validators/check/a.h": ""},
            "output_validators/check",
            "holds no program",
        ),
        ({"problem.yaml": "type: interactive\n"}, "problem.yaml", "interactive, but without a validator of its own"),
        (
            {"problem.yaml": f"{NEW}type: interactive\n"},
            "output_validator",
            "missing, though the problem's type needs a validator",
        ),
        (
            {"problem.yaml": f"{NEW}type: [pass-fail, submit-answer]\n"},
            "problem.yaml",
            "submit-answer problems are not supported",
        ),
        (
            {"problem.yaml": f"{NEW}type: multi-pass\nlimits: 3\n", "output_validator/check.py": ""},
            "problem.yaml",
            "limits must be a map",
        ),
        ({"include/python/lib.py": ""}, "include", "code added to every program is not supported"),
        ({"problem.yaml": "validator_flags: wild\n"}, "problem.yaml", "unknown validator flag 'wild'"),
        (
            {"problem.yaml": "validator_flags: float_tolerance\n"},
            "problem.yaml",
            "float_tolerance needs a number, not ''",
        ),
        (
            {"problem.yaml": "validator_flags: float_tolerance nan\n"},
            "problem.yaml",
            "float_tolerance needs a number, not 'nan'",
        ),
        ({"problem.yaml": "validator_flags: {a: b}\n"}, "problem.yaml", "must be a string or a list"),
        (
            {"problem.yaml": "validator_flags: space_change_sensitive\n"},
            "problem.yaml",
            "space_change_sensitive is supported only with case_sensitive",
        ),
        (
            {"data/secret/testdata.yaml": "output_validator_flags: case_sensitive\n"},
            "data/secret/testdata.yaml",
            "validator arguments that differ from test to test",
        ),
        ({"data/secret/01.yaml": "args: [--fast]\n"}, "data/secret/01.yaml", "command-line arguments"),
        ({"data/secret/01.files/a.txt": ""}, "data/secret/01.files", "input files beside stdin"),
        ({"data/secret/01.ans": None}, "data/secret/01.in", "has no answer 01.ans beside it"),
        ({"data/secret/01.in": None}, "data/secret/01.ans", "has no input 01.in beside it"),
        ({"data/secret/01.in": None, "data/secret/01.ans": None}, "data/secret", "holds no test (.in)"),
        ({"data/secret/01.in": b"ab\x80\n"}, "data/secret/01.in", "not UTF-8: invalid start byte at byte 2"),
        (
            {"data/secret/01.ans": b"\xc3"},
            "data/secret/01.ans",
            "not UTF-8: unexpected end of data at byte 0",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line_that_names_the_file(
    tmp_path: Path, files: dict[str, str | bytes | None], at_fault: str, reason: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        read_package(write_package(tmp_path, files))

    assert str(caught.value).startswith(f"{tmp_path / at_fault}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nowhere: no such directory"):
        read_package(tmp_path / "nowhere")


def test_links_may_not_leave_the_package(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")
    package = write_package(tmp_path / "package", {"data/secret/01.in": None})
    (package / "data/secret/01.in").symlink_to(outside)

    with pytest.raises(DatasetError, match="links to a file outside the package"):
        read_package(package)


def test_links_inside_the_package_are_followed(tmp_path: Path) -> None:
    package = write_package(tmp_path, {})
    (package / "data/secret/02.in").symlink_to("../sample/1.in")
    (package / "data/secret/02.ans").symlink_to("../sample/1.ans")

    assert read_package(package).tests[2] == StdioTest(input="1 2\n", output="3\n", name="secret/02")


def test_a_folder_that_holds_itself_ends_in_an_error(tmp_path: Path) -> None:
    package = write_package(tmp_path, {})
    (package / "data/secret/again").symlink_to(".")

    with pytest.raises(DatasetError, match="again: a link to a folder"):
        read_package(package)


@pytest.mark.parametrize(
    ("name", "tests", "cpu_s", "longest"),
    [("hindex", 34, 1.0, 700_007), ("watchlater", 16, 6.0, 408), ("stopwatch", 31, 2.0, 7006)],
)
def test_real_packages(corpus: Path, name: str, tests: int, cpu_s: float, longest: int) -> None:
    problem = read_package(corpus / name)
    assert (len(problem.tests), problem.limits.cpu_s) == (tests, cpu_s)
    assert max(len(test.input) for test in problem.tests) == longest
