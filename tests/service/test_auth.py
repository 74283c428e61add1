"""The file of tokens: what is taken from it, when it is not trusted, and that it may change under a running service."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import structlog

from service import auth
from service.auth import Tokens, TokensRefused

ALICE, ALICE_NEW, BOB = "alice-0123456789abcdef", "alice-new-0123456789ab", "Bob._~+/0123456789abcdef=="


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    write(path, f"# who may grade\n\nalice {ALICE}\nalice\t{ALICE_NEW}\n  bob.2 {BOB}  \n")
    return path


def write(path: Path, text: str) -> None:
    path.touch(0o600)
    path.write_text(text)


def test_each_token_has_the_name_of_its_line(file: Path) -> None:
    tokens = Tokens(file)
    assert [tokens.name_of(token) for token in (ALICE, ALICE_NEW, BOB)] == ["alice", "alice", "bob.2"]


@pytest.mark.parametrize(
    "token", ["", "alice", ALICE[:-1], ALICE + "x", ALICE.upper(), f"alice {ALICE}", "é", "\udcff"]
)
def test_what_is_no_token_of_the_file_is_nobodys(file: Path, token: str) -> None:
    assert Tokens(file).name_of(token) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no token"),
        ("# nothing\n\n", "holds no token"),
        (f"{ALICE}\n", "line 1 is not `name token`"),
        (f"alice {ALICE}\nbob {BOB} more\n", "line 2 is not `name token`"),
        (f"al:ice {ALICE}\n", "line 1 is not `name token`"),
        (f"{'a' * 65} {ALICE}\n", "line 1 is not `name token`"),
        ("alice 0123456789abcdef012é\n", "line 1 is not `name token`"),
        ("alice 0123456789\n", "the token in line 1 has fewer than 20 characters"),
        (f"alice {ALICE}\nbob {ALICE}\n", "the token in line 2 is that of another name"),
        (f"alice {ALICE}\n" * 3000, "larger than 64 KiB"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused_without_quoting_it(tmp_path: Path, text: str, why: str) -> None:
    write(path := tmp_path / "tokens", text)
    with pytest.raises(TokensRefused) as refused:
        Tokens(path)
    assert why in str(refused.value)
    assert "0123456789" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o620, 0o644, 0o666, 0o601])
def test_a_file_that_others_can_read_or_change_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(TokensRefused, match=f"its mode {mode:04o} lets others at it"):
        Tokens(file)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440])
def test_a_group_may_read_it_as_secrets_mounted_into_containers_have_it(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert Tokens(file).name_of(ALICE) == "alice"


@pytest.mark.jail
def test_a_file_of_another_user_is_refused(file: Path) -> None:
    os.chown(file, 12345, 0)
    with pytest.raises(TokensRefused, match="belongs to user 12345"):
        Tokens(file)


def test_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path, why in (
        (tmp_path / "pipe", "no plain file"),
        (tmp_path, "no plain file|Is a directory"),
        (tmp_path / "none", "No such file"),
    ):
        with pytest.raises(TokensRefused, match=why):
            Tokens(path)


def test_a_file_that_is_spoiled_changes_nothing(file: Path) -> None:
    tokens = Tokens(file)
    file.write_text("spoiled")
    with structlog.testing.capture_logs() as lines:
        tokens.reload()
    assert tokens.name_of(ALICE) == "alice"
    assert [(line["log_level"], "line 1" in line["error"]) for line in lines] == [("error", True)]
    file.unlink()
    tokens.reload()
    assert tokens.name_of(ALICE) == "alice"


def test_a_changed_file_is_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_LOOK_AGAIN_S", 0.01)

    async def scenario() -> None:
        tokens = Tokens(file)
        watching = asyncio.create_task(tokens.watch())
        async with asyncio.timeout(10):
            # In place, by another file under its name, and by leave to read it that comes later.
            write(file, f"carol {BOB}\n")
            while (tokens.name_of(BOB), tokens.name_of(ALICE)) != ("carol", None):
                await asyncio.sleep(0.01)
            write(other := file.with_name("other"), f"dave {BOB}\n")
            other.rename(file)
            while tokens.name_of(BOB) != "dave":
                await asyncio.sleep(0.01)
            write(file, f"erin {BOB}\n")
            file.chmod(0o666)
            await asyncio.sleep(0.05)
            file.chmod(0o600)
            while tokens.name_of(BOB) != "erin":
                await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(scenario())
