"""Operators' commands for credit and rates."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from entrypoints.cli.main import main
from tests.postgres.databases import create_database

SECRET = "a secret of at least thirty-two characters"
Command = Callable[..., Any]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("JOINERY_DATABASE_URL", asyncio.run(create_database("credit")))
    monkeypatch.setenv("JOINERY_SECRET", SECRET)

    def run(*words: str, fails: str = "") -> Any:
        code = main([*words, "--json"])
        captured = capsys.readouterr()
        assert code == (1 if fails else 0), captured.err
        if fails:
            assert fails in captured.err
            return None
        return json.loads(captured.out)

    return run


def test_an_operator_adds_credit(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    command("org", "create", "--name", "Fjord", "--kind", "retailer", "--plan", "standard")
    command("credit", "add", "--org", "Fjord", "--credits", "250", "--reason", "Goodwill")
    command("credit", "add", "--org", "Fjord", "--credits", "5", "--reason", "Test", "--expires", "2099-12-31")
    shown = command("credit", "show", "--org", "Fjord")
    assert shown["available_micros"] == 2_550_000
    assert [lot["remaining_micros"] for lot in shown["lots"]] == [2_500_000, 50_000]
    assert shown["lots"][1]["expires_at"] == "2099-12-31T00:00:00.000Z"
    assert command("credit", "show", "--org", "Fjord", "--mode", "test")["lots"] == []
    add = ("credit", "add", "--org", "Fjord", "--reason", "Test")
    command(*add, "--credits", "0", fails="--credits")
    command(*add, "--credits", "1", "--expires", "2020-01-01", fails="--expires")
    assert main(["credit", "show", "--org", "Fjord"]) == 0
    assert "Fjord: $2.55 available, $0.00 reserved" in capsys.readouterr().out


def test_a_rise_is_announced_30_days_in_advance(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("credit", "rates") == {"models": [], "announced": []}
    rate = ("credit", "rate", "--model", "small-1")
    soon, later = ((datetime.now(UTC) + timedelta(days=days)).date().isoformat() for days in (29, 32))
    command(*rate, "--input", "250", "--output", "2000")
    command(*rate, "--input", "251", "--output", "1000", fails="30 days")
    command(*rate, "--input", "250", "--output", "2001", "--from", soon, fails="30 days")
    command(*rate, "--input", "300", "--output", "2000", "--from", later)
    command(*rate, "--input", "200", "--output", "1500")
    rates = command("credit", "rates")
    assert [(row["input_micros_per_1k"], row["output_micros_per_1k"]) for row in rates["models"]] == [(200, 1500)]
    assert [(row["input_micros_per_1k"], row["effective_at"][:10]) for row in rates["announced"]] == [(300, later)]
    command(*rate, "--input", "-1", "--output", "1", fails="negative")
    assert main(["credit", "rates"]) == 0 and later in capsys.readouterr().out
