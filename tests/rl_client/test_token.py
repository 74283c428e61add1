from __future__ import annotations

from pathlib import Path

import pytest

from rl_client.errors import TokenError
from rl_client.token import read_token

TOKEN = "trainer-0123456789abcdef"


@pytest.fixture(autouse=True)
def no_token_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RKGRADE_TOKEN", raising=False)


def test_there_is_none_unless_one_is_given() -> None:
    assert read_token() is None


def test_a_file_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKGRADE_TOKEN", f" {TOKEN}\n")
    assert read_token() == TOKEN
    (tmp_path / "token").write_text("another/one+of~them==\n")
    assert read_token(tmp_path / "token") == "another/one+of~them=="


@pytest.mark.parametrize("content", [b"", b"\n", b"a line", TOKEN.encode() + b"\r\nX: y", "é".encode(), b"\xff"])
def test_what_is_no_token_is_refused_without_quoting_it(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(TokenError) as refused:
        read_token(tmp_path / "token")
    assert str(refused.value).startswith(f"{tmp_path / 'token'}: ")
    assert TOKEN not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="none: No such file"):
        read_token(tmp_path / "none")


def test_a_variable_that_holds_no_token_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKGRADE_TOKEN", "two words")
    with pytest.raises(TokenError, match="RKGRADE_TOKEN: holds no token"):
        read_token()
