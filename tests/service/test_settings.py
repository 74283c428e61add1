from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from pydantic import ValidationError

from service.cli import serve
from service.commands.worker import worker
from service.settings import OTHERS, Settings, usable_cores


def test_defaults_serve_on_the_loopback_with_a_worker_per_core() -> None:
    settings = Settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.workers == len(usable_cores())
    assert settings.body_limit_bytes == 256 * 2**20
    assert settings.insecure_no_cgroup is False


def test_environment_sets_every_kind_of_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKGRADE_DATA_DIR", "/srv/grader")
    monkeypatch.setenv("RKGRADE_WORKERS", "1")
    monkeypatch.setenv("RKGRADE_DRAIN_TIMEOUT_S", "2.5")
    monkeypatch.setenv("RKGRADE_INSECURE_NO_CGROUP", "true")
    monkeypatch.setenv("RKGRADE_LOG_FORMAT", "json")
    settings = Settings()
    assert settings.data_dir == Path("/srv/grader")
    assert settings.problems_dir == Path("/srv/grader/problems")
    assert settings.workers == 1
    assert settings.drain_timeout_s == 2.5
    assert settings.insecure_no_cgroup is True
    assert settings.log_format == "json"


def test_a_flag_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKGRADE_PORT", "9000")
    assert Settings(port=9001).port == 9001


def test_more_workers_than_cores_are_refused() -> None:
    with pytest.raises(ValidationError, match="need as many cores"):
        Settings(workers=len(usable_cores()) + 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [("RKGRADE_PORT", "eight"), ("RKGRADE_QUEUE_SIZE", "0"), ("RKGRADE_LOG_LEVEL", "loud")],
)
def test_a_malformed_variable_is_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError):
        Settings()


@pytest.mark.parametrize(
    ("name", "nearest"), [("RKGRADE_WORKER", "RKGRADE_WORKERS"), ("RKGRADE_QUEUESIZE", "RKGRADE_QUEUE_SIZE")]
)
def test_an_unknown_variable_is_refused_with_the_nearest_known(
    name: str, nearest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(ValidationError, match=f"{name} is no setting; the nearest is {nearest}"):
        Settings()


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_variables_of_other_parts_are_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/somewhere")
    assert Settings().port == 8000


def test_languages_and_their_time_factors_are_given_by_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKGRADE_LANGUAGES", "py3, C++17")
    monkeypatch.setenv("RKGRADE_TIME_FACTORS", "py3=3,C++17=1.5")
    settings = Settings()
    assert settings.offered_languages == {"python", "cpp"}
    assert settings.time_factors == {"python": 3.0, "cpp": 1.5}


def test_all_languages_are_offered_and_none_has_more_time_unless_said() -> None:
    settings = Settings()
    assert (settings.offered_languages, settings.time_factors) == (None, {})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RKGRADE_LANGUAGES", "python,cobol", "unknown language 'cobol'"),
        ("RKGRADE_LANGUAGES", "", "unknown language ''"),
        ("RKGRADE_TIME_FACTORS", "cobol=2", "unknown language 'cobol'"),
        ("RKGRADE_TIME_FACTORS", "python", "valid number"),
        ("RKGRADE_TIME_FACTORS", "python=0", "greater than or equal to 0.01"),
        ("RKGRADE_TIME_FACTORS", "python=nan", "finite number"),
    ],
)
def test_a_malformed_list_of_languages_is_refused(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError, match=said):
        Settings()


def test_flags_mirror_the_settings() -> None:
    served, worked = (set(inspect.signature(command).parameters) for command in (serve, worker))
    assert served | worked == set(Settings.model_fields)
    assert worked - served == {"metrics_host", "metrics_port"}
