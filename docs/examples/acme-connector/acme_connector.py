"""Reads Acme's price list: one JSON document with every item, asked for with an account and a token."""

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
    """Acme's price list."""

    def fetch(self, ctx: Context) -> AbstractAsyncContextManager[Fetched]:
        """Ask for the list; sends back what the last answer said of itself, so that an unchanged list costs nothing."""
        url = f"https://api.acme.example/v1/{quote(ctx.config['account'], safe='')}/items"
        return stream_file(ctx, url, {"Authorization": f"Bearer {(ctx.credentials or {}).get('token', '')}"})

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """One table whose columns say themselves what they mean, so that nobody has to map them."""
        records = iterate_document(path, "items", ctx.limits)
        rows = ((number, [record.get(name) for name in COLUMNS]) for number, record in records)
        yield Table(sheet=None, headers=tuple(COLUMNS), rows=rows, fields=tuple(COLUMNS.values()))


def _form(**properties: Any) -> dict[str, Any]:
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
        config_schema=_form(account={"type": "string", "minLength": 1, "description": "Your account at Acme."}),
        credentials_schema=_form(token={"type": "string", "minLength": 8, "description": "Your token at Acme."}),
        open=Acme,
    )
    return [spec]
