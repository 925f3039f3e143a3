"""Kubernetes manifests: valid by the API's schemas, consistent, with existing commands and settings."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from entrypoints.cli.main import build_command_line

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
BASE, EXAMPLE = FOLDER / "base", FOLDER / "overlays" / "example"
VERSIONS = ("1.30", "1.37")
"""An old version still in use, and the newest version with schemas."""
WORKLOADS = ("Deployment", "Job")
Manifest = Mapping[str, Any]


def parse_documents(text: str) -> list[Manifest]:
    return [one for one in yaml.safe_load_all(text) if one]


def read_kustomization(folder: Path) -> Manifest:
    return parse_documents((folder / "kustomization.yaml").read_text("utf-8"))[0]


@cache
def render_overlay() -> list[Manifest]:
    """The example overlay as it is applied; needs the program kubectl or kustomize, but no cluster."""
    command = next((argv for argv in (["kubectl", "kustomize"], ["kustomize", "build"]) if shutil.which(argv[0])), None)
    if command is None:
        pytest.skip("neither kubectl nor kustomize is installed")
    done = subprocess.run([*command, str(EXAMPLE)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return parse_documents(done.stdout)


def list_pods() -> list[tuple[str, Mapping[str, Any]]]:
    """Name and template of every workload."""
    return [(one["metadata"]["name"], one["spec"]["template"]) for one in render_overlay() if one["kind"] in WORKLOADS]


def select_pods(selector: Mapping[str, str]) -> list[str]:
    return [name for name, template in list_pods() if selector.items() <= template["metadata"]["labels"].items()]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", sorted([*BASE.glob("*.yaml"), *EXAMPLE.glob("*.yaml")]), ids=lambda file: file.name)
def test_files_are_valid(file: Path, version: str) -> None:
    for one in parse_documents(file.read_text("utf-8")):
        if one["kind"] != "Kustomization":
            kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_rendered_overlay_is_valid(version: str) -> None:
    for one in render_overlay():
        kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("folder", [BASE, EXAMPLE], ids=lambda folder: folder.name)
def test_every_file_is_listed_once(folder: Path) -> None:
    declared = read_kustomization(folder)
    files = {str(file.relative_to(folder)) for file in folder.rglob("*.yaml")} - {"kustomization.yaml"}
    listed = [*declared["resources"], *{one["path"] for one in declared.get("patches", ())}]
    assert {one for one in listed if not one.startswith("..")} == files
    assert len(listed) == len({*listed})


def test_settings_are_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    documented = {*re.findall(r"`(JOINERY_\w+)`", text)}
    generated = [one for folder in (BASE, EXAMPLE) for one in read_kustomization(folder)["configMapGenerator"]]
    names = {literal.partition("=")[0] for one in generated for literal in one["literals"]}
    assert {name.removesuffix("_FILE") for name in names} <= documented


def test_every_process_is_a_command_with_probes() -> None:
    started = set()
    for name, template in list_pods():
        [container] = template["spec"]["containers"]
        started.add(build_command_line().parse_args(container["args"])[0].__name__)
        probes = [container.get(probe) for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
        assert name == "joinery-migrate" or all(probes), name
    assert started == {"migrate", "api", "worker", "scheduler", "mail"}


def test_probes_name_ports_that_the_container_has() -> None:
    for name, template in list_pods():
        [container] = template["spec"]["containers"]
        ports = {port["name"] for port in container.get("ports", ())}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            declared = container.get(probe, {})
            for kind in ("httpGet", "tcpSocket"):
                assert kind not in declared or declared[kind]["port"] in ports, (name, probe)


def test_pods_hold_no_rights() -> None:
    for name, template in list_pods():
        spec = template["spec"]
        [container] = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["automountServiceAccountToken"] is False, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }, name  # fmt: skip
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), name
        assert "memory" in container["resources"]["limits"], name
        assert "env" not in container, f"{name}: secrets come as files, settings from the ConfigMap"


def test_services_set_no_variables() -> None:
    """A Service named joinery-… would set JOINERY_… variables, which are settings."""
    assert all(template["spec"]["enableServiceLinks"] is False for _, template in list_pods())


def test_the_scheduler_checks_the_api_at_its_service() -> None:
    [generated] = read_kustomization(BASE)["configMapGenerator"]
    [service] = [one for one in parse_documents((BASE / "api.yaml").read_text("utf-8")) if one["kind"] == "Service"]
    assert service["spec"]["ports"][0]["port"] == 80
    assert f"JOINERY_STATUS_URL=http://{service['metadata']['name']}" in generated["literals"]
    [policy] = [
        one
        for one in parse_documents((BASE / "network.yaml").read_text("utf-8"))
        if one["metadata"]["name"] == "joinery"
    ]
    api = {"podSelector": {"matchLabels": service["spec"]["selector"]}}
    assert {"to": [api], "ports": [{"port": 8080}]} in policy["spec"]["egress"]


def test_selectors_find_pods() -> None:
    for one in render_overlay():
        if one["kind"] == "Service":
            assert select_pods(one["spec"]["selector"])
        elif one["kind"] in ("PodDisruptionBudget", "Deployment"):
            [found] = select_pods(one["spec"]["selector"]["matchLabels"])
            assert found == one["metadata"]["name"]
        elif one["kind"] == "NetworkPolicy":
            assert select_pods(one["spec"]["podSelector"]["matchLabels"])


def test_every_deployment_survives_a_drained_node() -> None:
    budgets = {one["metadata"]["name"] for one in render_overlay() if one["kind"] == "PodDisruptionBudget"}
    assert budgets == {one["metadata"]["name"] for one in render_overlay() if one["kind"] == "Deployment"}
    scaled = {
        one["spec"]["scaleTargetRef"]["name"] for one in render_overlay() if one["kind"] == "HorizontalPodAutoscaler"
    }
    for one in render_overlay():
        if one["kind"] == "Deployment":
            assert ("replicas" in one["spec"]) is (one["metadata"]["name"] not in scaled), "an autoscaler sets replicas"
            assert one["spec"].get("replicas", 2) >= 2


def test_autoscaling_metrics_exist() -> None:
    shown = (ROOT / "entrypoints" / "scheduler" / "metrics.py").read_text("utf-8")
    adapter = (FOLDER / "prometheus-adapter.yaml").read_text("utf-8")
    names = {
        metric["external"]["metric"]["name"]
        for one in parse_documents((BASE / "workers.yaml").read_text("utf-8"))
        if one["kind"] == "HorizontalPodAutoscaler"
        for metric in one["spec"]["metrics"]
    }
    assert names
    for name in names:
        assert f'"{name}"' in shown
        assert {"seriesQuery": name}.items() <= yaml.safe_load(adapter)["rules"]["external"][0].items()
