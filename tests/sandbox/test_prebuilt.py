"""What is made once for the host: whole, once, readable to cells, and never stale."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import prebuilt
from sandbox.config import SandboxConfig
from sandbox.errors import HostError
from sandbox.languages import HEADERS_IN_JAIL, REGISTRY, Language

pytestmark = pytest.mark.jail

PLAIN = tuple(language for language in REGISTRY.values() if not language.header)
WITH_HEADERS = [language for language in REGISTRY.values() if language.header]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SandboxConfig:
    """A host of its own, without the languages whose headers take seconds to build."""
    only(monkeypatch, *PLAIN)
    return SandboxConfig(tmp_path)


def only(monkeypatch: pytest.MonkeyPatch, *languages: Language) -> None:
    monkeypatch.setattr("sandbox.prebuilt.installed", lambda offered: languages)


def listing(config: SandboxConfig) -> dict[str, int]:
    """Every file, with its inode: another inode is another build."""
    return {str(path): path.stat().st_ino for path in config.prebuilt_dir.rglob("*") if path.is_file()}


def test_all_that_is_mounted_is_there_and_readable_to_others(sandbox_config: SandboxConfig) -> None:
    mounted = prebuilt.binds(sandbox_config)
    assert {"/rkgrade", "/rkgrade-enter", "/etc/passwd", "/etc/group"} <= set(mounted)
    for language in WITH_HEADERS:
        assert (mounted[f"{HEADERS_IN_JAIL}/{language.id}"] / "bits/stdc++.h.gch").stat().st_size > 2**20
    # What languages list of the host's own is as the host has it.
    made = [source for source in mounted.values() if source.is_relative_to(sandbox_config.data_dir)]
    assert len(made) > len(WITH_HEADERS)
    for source in made:
        for path in (source, *source.rglob("*")):
            assert path.stat().st_mode & 0o005 == 0o005, path


@pytest.mark.parametrize("language", WITH_HEADERS, ids=lambda language: language.id)
def test_the_compiler_takes_the_header(sandbox_config: SandboxConfig, language: Language, tmp_path: Path) -> None:
    """g++ -H marks a precompiled header that it uses with "!", and one that it cannot use with "x"."""
    inside = f"{HEADERS_IN_JAIL}/{language.id}"
    outside = str(prebuilt.binds(sandbox_config)[inside])
    source = tmp_path / "main.cpp"
    source.write_text("#include <bits/stdc++.h>\nint main() {}\n")
    places = {inside: outside, "/prog/main.cpp": str(source), "/box/main": str(tmp_path / "main")}
    command = [places.get(word, word) for word in language.compile]
    said = subprocess.run([*command, "-H"], capture_output=True, text=True, check=True).stderr
    assert said.splitlines()[0] == f"! {outside}/bits/stdc++.h.gch"


def test_a_second_build_does_nothing(config: SandboxConfig) -> None:
    prebuilt.build(config)
    before = listing(config)
    prebuilt.build(config)
    assert listing(config) == before


def test_builders_at_once_build_once(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom sandbox import languages, prebuilt\n"
        "from sandbox.config import SandboxConfig\n"
        "plain = tuple(language for language in languages.installed() if not language.header)\n"
        "prebuilt.installed = lambda offered: plain\n"
        "prebuilt.build(SandboxConfig(Path(sys.argv[1])))\n"
        "print(sorted((str(p), p.stat().st_ino) for p in Path(sys.argv[1]).rglob('*') if p.is_file()))"
    )
    builders = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    seen = {builder.communicate(timeout=100)[0] for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0, 0]
    assert len(seen) == 1


def test_what_a_dead_builder_left_is_removed(config: SandboxConfig) -> None:
    left = config.prebuilt_dir / ".building-dead"
    left.mkdir(parents=True)
    (left / "enter").write_bytes(b"half")
    prebuilt.build(config)
    assert [path for path in config.prebuilt_dir.iterdir() if path.name.startswith(".building")] == []


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("ENTER_SOURCE", lambda config: prebuilt.binds(config)["/rkgrade-enter"]),
        ("CHECKERS_SOURCE", prebuilt.library),
    ],
    ids=["launcher", "checkers"],
)
def test_another_source_is_built_anew(
    config: SandboxConfig,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    made: Callable[[SandboxConfig], Path],
) -> None:
    prebuilt.build(config)
    before = made(config)
    changed = tmp_path / "changed.c"
    changed.write_text(getattr(prebuilt, name).read_text() + "/* changed */\n")
    monkeypatch.setattr(prebuilt, name, changed)
    with pytest.raises(HostError, match=rf"not prebuilt: .*/{before.name}; has the grader been replaced"):
        prebuilt.mounts(config)
    prebuilt.build(config)
    after = made(config)
    assert after != before
    assert after.exists()


def test_another_compiler_or_other_flags_have_another_header(
    sandbox_config: SandboxConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    language = WITH_HEADERS[0]
    place = f"{HEADERS_IN_JAIL}/{language.id}"
    now = prebuilt.binds(sandbox_config)[place]
    only(monkeypatch, replace(language, header=(*language.header, "-g")))
    other_flags = prebuilt.binds(sandbox_config)[place]
    only(monkeypatch, language)
    monkeypatch.setattr("sandbox.prebuilt.version", lambda language: "g++ 99")
    other_compiler = prebuilt.binds(sandbox_config)[place]
    assert len({now, other_flags, other_compiler}) == 3


def test_a_failing_build_says_what_failed_and_leaves_nothing(
    config: SandboxConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "enter.c"
    broken.write_text("int main(void) { return nothing_of_the_kind; }\n")
    monkeypatch.setattr("sandbox.prebuilt.ENTER_SOURCE", broken)
    with pytest.raises(HostError, match="nothing_of_the_kind"):
        prebuilt.build(config)
    assert [path.name for path in config.prebuilt_dir.iterdir() if path.name.startswith((".building", "enter"))] == []


def test_a_missing_compiler_is_named(config: SandboxConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.prebuilt.C_COMPILER", ("/nonexistent/gcc",))
    with pytest.raises(HostError, match="/nonexistent/gcc is missing: apt-get install"):
        prebuilt.build(config)
