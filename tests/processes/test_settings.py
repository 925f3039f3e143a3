"""The operator's secrets, and when sources are degraded, as processes are told them (docs/configuration.md)."""

import pytest

from entrypoints.settings import SettingsError, from_environment

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
