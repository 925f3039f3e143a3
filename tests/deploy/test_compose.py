"""Compose file: health checks, secrets as files, valid settings and commands."""

import re
from pathlib import Path
from typing import Any

import yaml

from entrypoints.cli.main import build_command_line

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROCESSES = {name: one for name, one in SERVICES.items() if one["image"] == "joinery"}
SECRET = re.compile(r"JOINERY_(SECRET|SECRET_FORMER|DATABASE_URL|\w*PASSWORD|\w*_KEY)$")


def test_every_process_is_a_command() -> None:
    started = {build_command_line().parse_args(one["command"])[0].__name__ for one in PROCESSES.values()}
    assert started == {"migrate", "api", "worker", "scheduler", "mail"}


def test_every_service_has_a_health_check() -> None:
    """The API uses the image's health check; the migration ends and reports by its exit code."""
    assert {name for name, one in SERVICES.items() if "test" not in one.get("healthcheck", {})} == {"api", "migrate"}
    assert "HEALTHCHECK" in (ROOT / "deploy" / "Dockerfile").read_text("utf-8")


def test_services_wait_for_services_with_health_checks() -> None:
    for name, one in SERVICES.items():
        for other, how in one.get("depends_on", {}).items():
            waited = how["condition"] == "service_healthy"
            assert "test" in SERVICES[other]["healthcheck"] if waited else other == "migrate", (name, other)
        assert name not in PROCESSES or name == "migrate" or {*one["depends_on"]} == {"migrate", "valkey"}


def test_secrets_are_files() -> None:
    for name, one in SERVICES.items():
        environment = one.get("environment", {})
        assert not [variable for variable in environment if SECRET.match(variable)], name
        read = {value.rpartition("/")[2] for variable, value in environment.items() if variable.endswith("_FILE")}
        assert read == {*one.get("secrets", ())}, name
        assert read <= COMPOSE["secrets"].keys()


def test_settings_are_documented() -> None:
    documented = {*re.findall(r"`(JOINERY_\w+)`", (ROOT / "docs" / "configuration.md").read_text("utf-8"))}
    names = {name for one in PROCESSES.values() for name in one["environment"] if name.startswith("JOINERY_")}
    assert {name.removesuffix("_FILE") for name in names} <= documented


def test_the_scheduler_checks_the_api_in_its_own_container() -> None:
    assert SERVICES["scheduler"]["environment"]["JOINERY_STATUS_URL"] == "${JOINERY_STATUS_URL:-http://api:8080}"
    assert "api" in SERVICES


def test_containers_hold_no_rights() -> None:
    for name, one in PROCESSES.items():
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name
