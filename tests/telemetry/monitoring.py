"""Prometheus rules and Grafana panels in `deploy/`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"


def load_rules() -> list[dict[str, Any]]:
    """Return all alerts."""
    whole = yaml.safe_load((DEPLOY / "prometheus" / "joinery.rules.yml").read_text("utf-8"))
    return [rule for group in whole["groups"] for rule in group["rules"]]


def load_panels() -> list[dict[str, Any]]:
    """Return all panels with queries."""
    whole = json.loads((DEPLOY / "grafana" / "joinery.json").read_text("utf-8"))
    return [panel for panel in whole["panels"] if panel["type"] != "row"]


def list_queries() -> Iterator[tuple[str, str]]:
    """Yield the place and the expression of each query."""
    for rule in load_rules():
        yield rule["alert"], rule["expr"]
    for panel in load_panels():
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]
