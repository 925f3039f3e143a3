"""Advertised features, meters, error codes and events exist."""

import re
from pathlib import Path

import pytest

from domain.events.model import NOT_SENT_YET, TYPES
from domain.orgs.model import FEATURES, MeterAllowance, Plan
from domain.webhooks.model import SUBSCRIBED_TYPES
from tests.support.operation_table import load_operation_table

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("domain",)
"""Events are published by the domain; adapters and entrypoints only describe types."""
EXCLUDED = ("domain/events/model.py", "domain/webhooks/samples.py")


def _read_sources() -> str:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return "\n".join(path.read_text("utf-8") for path in files if str(path.relative_to(ROOT)) not in EXCLUDED)


SOURCES = _read_sources()


def test_displayed_features_are_required_by_operations() -> None:
    required = {operation.feature for operation in load_operation_table()} | {
        operation.body_feature for operation in load_operation_table()
    }
    assert required - {None} == FEATURES


def test_plans_show_existing_features_only() -> None:
    meter = MeterAllowance(1, 1, 1)
    plan = Plan("max", "Max", "max", "usd", 1, FEATURES, {"export_rows": meter, "ai_tokens": meter, "sources": meter})
    assert plan.features == FEATURES
    assert plan.find_included_amount("export_rows") == 1


@pytest.mark.parametrize("name", sorted(TYPES))
def test_events_are_marked_until_they_are_published(name: str) -> None:
    assert TYPES[name].is_sent == (f'"{name}"' in SOURCES)


def test_the_description_of_endpoints_marks_them() -> None:
    marked = set(re.findall(r"`([a-z]+\.[a-z_]+)`", SUBSCRIBED_TYPES["description"]))
    assert marked == NOT_SENT_YET
