"""The Helm chart: Helm's and Kubernetes' own word on it, and what it must never ask a cluster for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from service.settings import Settings

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "rkgrade"
HELM = Path(sys.prefix) / "share" / "rkgrade" / "helm"
VALUES = sorted((CHART / "ci").glob("*.yaml"))
#: The oldest and the newest Kubernetes that the chart is held to.
KUBERNETES = ("1.33", "1.37")
#: Kinds that no Kubernetes has by itself.
FOREIGN = {"ScaledObject", "ServiceMonitor", "PrometheusRule"}

every_values = pytest.mark.parametrize("values", VALUES, ids=[path.stem for path in VALUES])


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, timeout=120)


@cache
def rendered(values: Path) -> tuple[dict[str, Any], ...]:
    done = helm("template", "grader", CHART, "--namespace", "code", "--values", values, "--kube-version", KUBERNETES[0])
    assert done.returncode == 0, done.stderr
    return tuple(one for one in yaml.safe_load_all(done.stdout) if one)


def of_kind(values: str, kind: str) -> dict[str, dict[str, Any]]:
    """By name, what values file `values` comes to of that kind."""
    found = rendered(CHART / "ci" / f"{values}.yaml")
    return {one["metadata"]["name"]: one for one in found if one["kind"] == kind}


def pods(values: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in rendered(values):
        if one["kind"] in ("Deployment", "DaemonSet", "StatefulSet"):
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod["containers"], *pod.get("initContainers", [])]


@every_values
def test_helm_finds_nothing_amiss(values: Path) -> None:
    done = helm("lint", "--strict", CHART, "--values", values, "--kube-version", KUBERNETES[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout


@every_values
@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_takes_every_object(values: Path, version: str) -> None:
    for one in rendered(values):
        if one["kind"] not in FOREIGN:
            kubernetes_validate.validate(one, version, strict=True)


@every_values
def test_every_object_has_a_name_of_its_own_and_says_whose_it_is(values: Path) -> None:
    found = rendered(values)
    names = [(one["kind"], one["metadata"]["name"]) for one in found]
    assert len(set(names)) == len(names)
    assert {one["metadata"]["labels"]["app.kubernetes.io/instance"] for one in found} == {"grader"}


@every_values
def test_no_container_is_privileged_or_keeps_a_capability_without_a_reason(values: Path) -> None:
    for name, pod in pods(values):
        for container in containers(pod):
            context = container["securityContext"]
            assert "privileged" not in context
            assert context["capabilities"]["drop"] == ["ALL"]
            assert context["readOnlyRootFilesystem"] is True
            added = set(context["capabilities"].get("add", []))
            if container["name"] != "worker":
                assert (added, context["allowPrivilegeEscalation"]) == (set(), False), name
            elif pod["hostUsers"]:
                assert added == {"SETUID", "SETGID", "KILL", "DAC_OVERRIDE", "SYS_NICE", "SYS_ADMIN", "SETPCAP"}
            else:
                assert added == {"SETUID", "SETGID", "KILL", "DAC_OVERRIDE", "SYS_NICE"}
                assert context["allowPrivilegeEscalation"] is False


@every_values
def test_only_workers_are_root_and_only_in_a_user_namespace_unless_told(values: Path) -> None:
    told = yaml.safe_load(values.read_text()).get("worker", {}).get("isolation") == "hostUsers"
    for name, pod in pods(values):
        context = pod["securityContext"]
        if name.endswith("-worker"):
            assert (context["runAsUser"], pod["hostUsers"]) == (0, told)
        else:
            assert context["runAsNonRoot"] is True
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not any(pod.get(shared) for shared in ("hostNetwork", "hostPID", "hostIPC"))
        assert pod["automountServiceAccountToken"] is False


@every_values
def test_proc_is_unmasked_only_where_kubernetes_allows_it(values: Path) -> None:
    """No schema says so: the API server refuses it for pods that have the node's users."""
    for _, pod in pods(values):
        for container in containers(pod):
            unmasked = container["securityContext"].get("procMount") == "Unmasked"
            assert unmasked == (container["name"] == "worker" and pod["hostUsers"] is False)


@every_values
def test_nothing_of_the_node_is_mounted_but_where_the_kubelet_looks_for_seccomp_profiles(values: Path) -> None:
    for _, pod in pods(values):
        mounted = {volume["hostPath"]["path"] for volume in pod.get("volumes", []) if "hostPath" in volume}
        assert mounted <= {"/var/lib/kubelet/seccomp"}
        for container in pod["containers"]:
            assert "seccomp" not in {mount["name"] for mount in container["volumeMounts"]}


def test_the_seccomp_profile_that_is_installed_is_the_one_that_is_named() -> None:
    [pod] = [pod for name, pod in pods(CHART / "ci" / "least.yaml") if name.endswith("-worker")]
    [install] = pod["initContainers"]
    profile = pod["securityContext"]["seccompProfile"]
    assert profile == {"type": "Localhost", "localhostProfile": "rkgrade/worker.json"}
    assert install["command"][-1] == f"/seccomp/{profile['localhostProfile']}"
    [shipped] = of_kind("least", "ConfigMap").values()
    assert json.loads(shipped["data"]["worker.json"]) == json.loads(
        (ROOT / "deploy" / "seccomp" / "worker.json").read_text()
    )


@every_values
def test_every_variable_is_a_setting_and_no_service_becomes_one(values: Path) -> None:
    """An unknown variable of the prefix is refused at the start; Kubernetes makes such of Services' names."""
    known = {f"RKGRADE_{name.upper()}" for name in Settings.model_fields}
    for _, pod in pods(values):
        assert pod["enableServiceLinks"] is False
        for container in containers(pod):
            names = [variable["name"] for variable in container.get("env", [])]
            assert len(set(names)) == len(names)
            assert {name for name in names if name.startswith("RKGRADE_")} <= known


@every_values
def test_secrets_stand_in_no_object(values: Path) -> None:
    assert not any(one["kind"] == "Secret" for one in rendered(values))
    for _, pod in pods(values):
        for variable in (v for container in containers(pod) for v in container.get("env", [])):
            if variable["name"] == "REDIS_PASSWORD":
                assert "secretKeyRef" in variable["valueFrom"]
            elif variable["name"] == "RKGRADE_REDIS_URL" and "value" in variable:
                assert variable["value"].startswith("redis://:$(REDIS_PASSWORD)@")


@every_values
def test_a_pod_is_given_the_time_that_its_drain_takes(values: Path) -> None:
    for name, pod in pods(values):
        drains = [v["value"] for v in pod["containers"][0].get("env", []) if v["name"] == "RKGRADE_DRAIN_TIMEOUT_S"]
        assert len(drains) == (0 if name.endswith("-redis") else 1)
        assert all(pod["terminationGracePeriodSeconds"] > int(drain) for drain in drains)


@every_values
def test_every_container_that_serves_is_probed_on_a_port_that_it_has(values: Path) -> None:
    for _, pod in pods(values):
        for container in pod["containers"]:
            ports = {port["name"] for port in container["ports"]}
            for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
                probe = container[kind]
                asked = probe.get("httpGet") or probe.get("tcpSocket")
                assert asked is None or asked["port"] in ports


def test_workers_reach_redis_the_store_and_name_servers_alone() -> None:
    policy = of_kind("everything", "NetworkPolicy")["grader-rkgrade-worker"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    dns, redis, store = policy["egress"]
    assert [port["port"] for port in dns["ports"]] == [53, 53]
    assert redis == {"to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}], "ports": [{"protocol": "TCP", "port": 6380}]}
    assert store == {"to": [{"ipBlock": {"cidr": "10.1.2.4/32"}}], "ports": [{"protocol": "TCP", "port": 443}]}
    [scraped] = policy["ingress"]
    assert [port["port"] for port in scraped["ports"]] == ["metrics"]

    [_, redis] = of_kind("least", "NetworkPolicy")["grader-rkgrade-worker"]["spec"]["egress"]
    [peer] = redis["to"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "redis"
    assert of_kind("least", "NetworkPolicy")["grader-rkgrade-redis"]["spec"]["egress"] == []


def test_a_store_in_a_bucket_takes_its_credentials_and_no_volume() -> None:
    for values, url, volumes in (
        ("least", None, 1),
        ("hpa", "file:///var/lib/rkgrade/problems", 1),
        ("bucket", "s3://bucket/rkgrade", 0),
    ):
        assert len(of_kind(values, "PersistentVolumeClaim")) == volumes
        for name, pod in pods(CHART / "ci" / f"{values}.yaml"):
            if name.endswith("-redis"):
                continue
            [container] = pod["containers"]
            told = [one["value"] for one in container["env"] if one["name"] == "RKGRADE_STORE_URL"]
            assert told == ([] if url is None else [url])
            assert [one for one in container["volumeMounts"] if one["name"] == "problems"] == volumes * [
                {"name": "problems", "mountPath": "/var/lib/rkgrade/problems"}
            ]
            assert {one["name"] for one in container["volumeMounts"]} <= {one["name"] for one in pod["volumes"]}
            secrets = [one["secretRef"]["name"] for one in container.get("envFrom", [])]
            assert secrets == ([] if volumes else ["rkgrade-store"])


@every_values
def test_what_selects_pods_finds_them(values: Path) -> None:
    found = rendered(values)
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in found
        if one["kind"] in ("Deployment", "DaemonSet", "StatefulSet")
    ]
    for one in found:
        if one["kind"] == "Service":
            selector = one["spec"]["selector"]
        elif one["kind"] == "PodDisruptionBudget":
            selector = one["spec"]["selector"]["matchLabels"]
        elif one["kind"] == "NetworkPolicy":
            selector = one["spec"]["podSelector"]["matchLabels"]
        else:
            continue
        assert sum(selector.items() <= pod.items() for pod in labels) == 1, one["metadata"]["name"]


def test_prometheus_finds_the_jobs_that_rules_ask_about() -> None:
    services = of_kind("everything", "Service")
    for name, monitor in of_kind("everything", "ServiceMonitor").items():
        selector = monitor["spec"]["selector"]["matchLabels"]
        [service] = [one for one in services.values() if selector.items() <= one["metadata"]["labels"].items()]
        assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == f"rkgrade-{name.rpartition('-')[2]}"
        [endpoint] = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_rules_and_board_are_those_of_the_checkout() -> None:
    [rule] = of_kind("everything", "PrometheusRule").values()
    files = [ROOT / "deploy" / "prometheus" / "rules" / name for name in ("recording.yml", "alerts.yml")]
    assert rule["spec"]["groups"] == [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    board = of_kind("everything", "ConfigMap")["grader-rkgrade-dashboard"]
    assert json.loads(board["data"]["rkgrade.json"]) == json.loads((ROOT / "deploy/grafana/rkgrade.json").read_text())


def test_workers_are_scaled_by_the_age_of_the_queue() -> None:
    [scaled] = of_kind("everything", "ScaledObject").values()
    [trigger] = scaled["spec"]["triggers"]
    assert trigger["metadata"]["query"] == "rkgrade:queue_age_seconds"
    assert scaled["spec"]["scaleTargetRef"]["name"] in of_kind("everything", "Deployment")
    scaler = of_kind("hpa", "HorizontalPodAutoscaler")["grader-rkgrade-worker"]["spec"]
    assert scaler["metrics"][0]["external"]["metric"] == {"name": "rkgrade_queue_age_seconds"}
    for values in ("everything", "hpa"):
        assert "replicas" not in of_kind(values, "Deployment")["grader-rkgrade-worker"]["spec"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "tokens.existingSecret: name the Secret with the clients' tokens"),
        (("tokens.existingSecret=t",), "redis.passwordSecret: name the Secret"),
        (("tokens.existingSecret=t", "redis.enabled=false"), "redis: enable the one of this chart"),
        (("tokens.existingSecret=t", "redis.externalSecret=r"), "redis.externalPeers: say where that Redis is"),
        (
            (
                "tokens.existingSecret=t",
                "redis.passwordSecret=r",
                "worker.kind=DaemonSet",
                "worker.autoscaling.kind=keda",
            ),
            "worker.autoscaling.kind: a DaemonSet has as many pods as there are nodes",
        ),
        (
            ("tokens.existingSecret=t", "redis.passwordSecret=r", "metrics.serviceMonitor.enabled=true"),
            "metrics.serviceMonitor.tokenSecret.name: Prometheus needs a token",
        ),
        (
            ("tokens.existingSecret=t", "redis.passwordSecret=r", "store.url=s3://bucket"),
            "store.egress: say where that store is",
        ),
        (
            ("tokens.existingSecret=t", "redis.passwordSecret=r", "store.url=file:///srv"),
            "store.url: the volume is at file:///var/lib/rkgrade/problems",
        ),
        (
            ("tokens.existingSecret=t", "redis.passwordSecret=r", "settings.RKGRADE_STORE_URL=s3://bucket"),
            "settings.RKGRADE_STORE_URL: say it as store.url",
        ),
        (("store.url=bucket",), "/store/url"),
        (("worker.isolation=none",), "/worker/isolation"),
        (("worker.cores=0",), "/worker/cores"),
        (("worker.coers=2",), "coers"),
        (("settings.LANGUAGES=python",), "LANGUAGES"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(given: tuple[str, ...], said: str) -> None:
    done = helm("template", "grader", CHART, *(part for value in given for part in ("--set", value)))
    assert done.returncode != 0
    assert said in done.stderr


def test_values_are_documented_and_known_to_the_schema() -> None:
    values, schema = (
        yaml.safe_load((CHART / "values.yaml").read_text()),
        json.loads((CHART / "values.schema.json").read_text()),
    )

    def unknown(value: Any, described: dict[str, Any], path: str) -> list[str]:
        known = described.get("properties")
        if known is None or not isinstance(value, dict):
            return []
        return [
            missing
            for name, inner in value.items()
            for missing in ([f"{path}{name}"] if name not in known else unknown(inner, known[name], f"{path}{name}."))
        ]

    assert unknown(values, schema, "") == []


def test_notes_warn_of_what_is_open() -> None:
    done = helm("install", "grader", CHART, "--dry-run=client", "--values", CHART / "ci" / "host-users.yaml")
    assert "WARNING: whoever reaches the API may grade programs" in done.stdout, done.stderr
    assert "WARNING: root of the worker pods is root of their nodes" in done.stdout
