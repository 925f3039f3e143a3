"""Tests that docs/limits.md shows the plans of a new database."""

from tests.docs.commands import ROOT
from tests.docs.server import Server
from tests.flows.api_client import ApiClient

_UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30))


def _format_size(size: int) -> str:
    name, unit = next((name, unit) for name, unit in _UNITS if size >= unit)
    return f"{size // unit} {name}"


def test_the_table_of_plans_is_current(server: Server) -> None:
    api = ApiClient(server.stage.port, server.env["JOINERY_KEY"])
    rows = [
        f"| `{plan['code']}` | `{plan['tier']}` | {plan['meters']['sources']['included']:,} "
        f"| {_format_size(plan['meters']['stored_bytes']['included'])} | {', '.join(f'`{name}`' for name in plan['features'])} |"
        for plan in api.get("/v1/plans")["data"]
    ]
    text = (ROOT / "docs" / "limits.md").read_text("utf-8")
    assert len(rows) == 4
    for row in rows:
        assert row in text, row
