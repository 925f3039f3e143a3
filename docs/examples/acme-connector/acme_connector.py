"""Connector for Acme's price list, a JSON document with all items that requires an account and a token."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from joinery_sdk import ConnectorSpec, Context, Fetched, Table, hookimpl
from joinery_sdk.fetching import stream_file
from joinery_sdk.readers.json_records import iterate_document

COLUMNS = {
    "item": "variant_key",
    "family": "product_key",
    "name": "title",
    "colour": "axes.Colour",
    "list_price": "price",
    "on_hand": "quantity",
}


class Acme:
    """Connector for the price list."""

    def fetch(self, ctx: Context) -> AbstractAsyncContextManager[Fetched]:
        """Fetch the list. The request is conditional, so an unchanged list is not transferred again."""
        url = f"https://api.acme.example/v1/{quote(ctx.config['account'], safe='')}/items"
        return stream_file(ctx, url, {"Authorization": f"Bearer {(ctx.credentials or {}).get('token', '')}"})

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield one table, whose columns declare their fields and therefore need no mapping."""
        records = iterate_document(path, "items", ctx.limits)
        rows = ((number, [record.get(name) for name in COLUMNS]) for number, record in records)
        yield Table(sheet=None, headers=tuple(COLUMNS), rows=rows, fields=tuple(COLUMNS.values()))


def _build_schema(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties, all of which are required."""
    return {"type": "object", "properties": properties, "required": list(properties)}


@hookimpl
def joinery_connectors() -> list[ConnectorSpec]:
    """Return the connector `acme`."""
    spec = ConnectorSpec(
        name="acme",
        title="Acme price list",
        kinds=frozenset({"api"}),
        streams=frozenset({"catalogue", "stock"}),
        can_fetch=True,
        config_schema=_build_schema(account={"type": "string", "minLength": 1, "description": "Your account at Acme."}),
        credentials_schema=_build_schema(
            token={"type": "string", "minLength": 8, "description": "Your token at Acme."}
        ),
        open=Acme,
    )
    return [spec]
