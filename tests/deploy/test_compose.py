"""docker-compose.yml and its images, as far as reading them tells; what a host must be given is really made."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings import Settings
from tests.deploy.test_helm import pods

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
WORKERS = ("worker-1", "worker-2")

every_service = pytest.mark.parametrize("name", SERVICES)


@every_service
def test_no_service_is_privileged_or_may_become_so(name: str) -> None:
    service = SERVICES[name]
    assert "privileged" not in service
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True
    assert "no-new-privileges:true" in service["security_opt"]
    assert ("cap_add" in service) is (name in WORKERS)
    assert "mem_limit" in service


@pytest.mark.parametrize("name", WORKERS)
def test_workers_have_the_rights_that_the_chart_gives_them(name: str) -> None:
    [pod] = [pod for pod_name, pod in pods(ROOT / "deploy/helm/rkgrade/ci/least.yaml") if pod_name.endswith("-worker")]
    [container] = pod["containers"]
    assert SERVICES[name]["cap_add"] == container["securityContext"]["capabilities"]["add"]
    options = SERVICES[name]["security_opt"]
    assert "systempaths=unconfined" in options
    [profile] = [option.removeprefix("seccomp:") for option in options if option.startswith("seccomp:")]
    assert (ROOT / profile).is_file()


def test_workers_are_on_no_network_with_a_way_out_and_share_no_core() -> None:
    assert all(set(SERVICES[name]["networks"]) == {"graders"} for name in WORKERS)
    assert COMPOSE["networks"]["graders"] == {"internal": True}
    assert len({SERVICES[name]["cpuset"] for name in WORKERS}) == len(WORKERS)


@every_service
def test_ports_are_published_on_the_loopback_address_alone(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@every_service
def test_further_settings_are_for_the_api_and_workers(name: str) -> None:
    own = [{"path": "deploy/compose/settings.env", "required": False}]
    assert SERVICES[name].get("env_file", []) == (own if name in ("api", *WORKERS) else [])


@every_service
def test_variables_are_settings(name: str) -> None:
    known = {f"RKGRADE_{field.upper()}" for field in Settings.model_fields}
    assert {key for key in SERVICES[name].get("environment", {}) if not key.startswith("GF_")} <= known


def test_prometheus_scrapes_services_by_their_names_and_ports() -> None:
    jobs = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())["scrape_configs"]
    api, worker = jobs
    assert api["static_configs"] == [{"targets": ["api:8000"]}]
    [found] = worker["dns_sd_configs"]
    assert all(found["names"] == SERVICES[name]["networks"]["graders"]["aliases"] for name in WORKERS)
    assert {str(found["port"])} == {SERVICES[name]["environment"]["RKGRADE_METRICS_PORT"] for name in WORKERS}


def test_images_hold_what_they_copy_and_nothing_else_is_sent_to_the_daemon() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile, re.M)
    copied = {word.partition("/")[0] for line in lines for word in line.split()}
    allowed = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    assert copied == {path.partition("/")[0] for path in allowed}
    assert all((ROOT / path).exists() for path in allowed)
    # Whichever lock an image is built with; those of the tests and of Helm are no image's.
    locks = {path.name for path in (ROOT / "requirements").iterdir()} - {"dev.txt", "helm.txt"}
    assert {f"requirements/{name}" for name in locks} <= allowed
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", dockerfile, re.M))
    assert {service["build"]["target"] for service in SERVICES.values() if "build" in service} <= stages


PROJECT = "rkgrade-prepare-test"
ENVIRONMENT = os.environ | {"COMPOSE_PROJECT_NAME": PROJECT, "PROGRAMS_MB": "512"}


def groups() -> list[Path]:
    return [path for path in Path("/sys/fs/cgroup").glob(f"**/{PROJECT}") if path.is_dir()]


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[Path]:
    """A checkout in which `prepare` has been run, and is undone: nothing that it made is left."""
    (tmp_path / "deploy" / "compose").mkdir(parents=True)
    script = tmp_path / "deploy" / "compose" / "prepare"
    shutil.copy(ROOT / "deploy" / "compose" / "prepare", script)
    before = sorted(tmp_path.rglob("*"))
    subprocess.run([script], check=True, timeout=30, env=ENVIRONMENT)
    yield tmp_path
    # As a killed worker's cells leave them.
    for group in groups():
        (group / WORKERS[0] / "rkgrade-1-2-3" / "program").mkdir(parents=True)
    subprocess.run([script, "--undo"], check=True, timeout=30, env=ENVIRONMENT)
    assert sorted(tmp_path.rglob("*")) == before
    assert groups() == []


@pytest.mark.jail
def test_a_host_is_prepared_once(prepared: Path) -> None:
    folder = prepared / "deploy" / "compose"
    first = {path: path.read_text() for path in (*folder.glob("secrets/*"), folder / "cgroups.yml", prepared / ".env")}
    subprocess.run([folder / "prepare"], check=True, timeout=30, env=ENVIRONMENT)
    assert {path: path.read_text() for path in first} == first

    password = (folder / "secrets" / "redis-password").read_text().strip()
    assert re.fullmatch(r"[0-9a-f]{64}", password)
    assert f"RKGRADE_REDIS_URL=redis://:{password}@redis:6379/0\n" in (prepared / ".env").read_text()
    assert (prepared / ".env").stat().st_mode & 0o077 == 0
    tokens = folder / "secrets" / "tokens"
    assert (tokens.stat().st_uid, tokens.stat().st_mode & 0o777) == (10001, 0o400)

    made = yaml.safe_load((folder / "cgroups.yml").read_text())["services"]
    assert set(made) == set(WORKERS)
    mounted = [volume.partition(":")[0] for one in made.values() for volume in one["volumes"]]
    assert len(set(mounted)) == len(mounted) >= len(WORKERS)
    assert all(Path(group).is_dir() for group in mounted)
    limits = [Path(group) / name for group in mounted for name in ("memory.max", "memory.limit_in_bytes")]
    assert {int(limit.read_text()) for limit in limits if limit.exists()} == {512 * 2**20}
