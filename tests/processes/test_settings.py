"""The operator's secrets, whom to ask, and when sources are degraded, as processes are told them (docs/configuration.md)."""

from pathlib import Path

import pytest

from adapters.scripted.models import ScriptedModels
from entrypoints.container import models_of
from entrypoints.http.validation import SchemaFaults
from entrypoints.settings import Settings, SettingsError, from_environment

CURRENT, FORMER, OLDER = ("c" * 32, "f" * 32, "o" * 40)


def secrets(former: str) -> tuple[str, ...]:
    """What a process knows that is told these former ones."""
    env = {"JOINERY_DATABASE_URL": "postgresql://x", "JOINERY_SECRET": CURRENT, "JOINERY_SECRET_FORMER": former}
    return from_environment(env).secrets


def test_former_ones_stand_behind_the_current_one() -> None:
    assert secrets("") == secrets(" , ") == secrets(CURRENT) == (CURRENT,)
    assert secrets(f"{FORMER}, {OLDER},{FORMER},{CURRENT}") == (CURRENT, FORMER, OLDER)


def test_short_ones_are_refused() -> None:
    with pytest.raises(SettingsError, match="JOINERY_SECRET_FORMER .* at least 32 characters"):
        secrets(f"{FORMER},short")


def ladder(**env: str) -> tuple[int, int]:
    """How many failed runs a process is told of."""
    found = from_environment({"JOINERY_DATABASE_URL": "postgresql://x", "JOINERY_SECRET": CURRENT, **env})
    return found.degraded_after, found.blocked_after


def test_when_sources_are_degraded_and_blocked() -> None:
    assert ladder() == (3, 10)
    assert ladder(JOINERY_DEGRADED_AFTER="1", JOINERY_BLOCKED_AFTER="2") == (1, 2)
    for wrong in ({"JOINERY_DEGRADED_AFTER": "0"}, {"JOINERY_DEGRADED_AFTER": "5", "JOINERY_BLOCKED_AFTER": "4"}):
        with pytest.raises(SettingsError, match="JOINERY_BLOCKED_AFTER no less"):
            ladder(**wrong)


def asked(models: str) -> Settings:
    """The settings of a process that is told to ask these."""
    return from_environment(
        {"JOINERY_DATABASE_URL": "postgresql://x", "JOINERY_SECRET": CURRENT, "JOINERY_MODELS": models}
    )


def test_nobody_is_asked_unless_somebody_is_named(tmp_path: Path) -> None:
    assert asked("").models is None and models_of(asked(" "), SchemaFaults()) is None
    for unknown in ("openai:gpt", "scripted:script.json", "https://models.example/"):
        with pytest.raises(SettingsError, match="JOINERY_MODELS must be"):
            asked(unknown)
    with pytest.raises(SettingsError, match=r"JOINERY_MODELS .*missing\.json"):
        models_of(asked(f"scripted://{tmp_path}/missing.json"), SchemaFaults())
    script = tmp_path / "a script.json"
    script.write_text('{"answers": []}', "utf-8")
    assert isinstance(models_of(asked("scripted:" + script.as_uri()[5:]), SchemaFaults()), ScriptedModels)
