"""The connector for files: pulled from a URL, uploaded or mailed, in whatever format they turn out to be."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connectors.csv import delimited, workbook
from connectors.csv.sniffing import sniff
from connectors.sdk.context import Context
from connectors.sdk.credentials import CREDENTIALS, sign, without_query
from connectors.sdk.errors import BadData
from connectors.sdk.pulling import pull
from connectors.sdk.readers import json_records, xml_records
from connectors.sdk.readers.records import table_of
from connectors.sdk.settings import HARMLESS, URL, config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched
from connectors.sdk.tables import Table

_ACCEPT = "text/csv, application/json, application/xml, */*;q=0.8"
_PATH = {"type": "string", "minLength": 1, "maxLength": 200}


class FileConnector:
    """Fetches one file and reads CSV, TSV, XLSX, JSON, JSON Lines, XML and Google Merchant feeds."""

    def fetch(self, ctx: Context) -> AbstractAsyncContextManager[Fetched]:
        """Ask for config.url (config.stock_url for the stock stream, when it is set), conditionally."""
        url = _url(ctx)
        signed, headers = sign(url, ctx.credentials)
        shown = without_query(signed, frozenset({str((ctx.credentials or {}).get("query"))})) if signed != url else None
        return pull(ctx, signed, {"Accept": _ACCEPT, **headers}, shown_url=shown)

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Tables by the file's content; config.format decides where content does not."""
        kind = sniff(path, ctx.config.get("format"))
        if kind == "xlsx":
            return workbook.tables(ctx, path)
        if kind == "csv":
            return delimited.tables(ctx, path)
        return _records(ctx, path, kind)


def _records(ctx: Context, path: Path, kind: str) -> Iterator[Table]:
    records_path = ctx.config.get("records_path")
    if kind == "xml":
        records = xml_records.records(path, records_path, ctx.limits)
    elif kind == "jsonl":
        records = json_records.lines(path, records_path, ctx.limits)
    else:
        records = json_records.document(path, records_path, ctx.limits)
    yield table_of(records, ctx, variants_path=ctx.config.get("variants_path"))


def _url(ctx: Context) -> str:
    url = ctx.config.get("url")
    if ctx.stream == "stock":
        url = ctx.config.get("stock_url", url)
    if not isinstance(url, str) or not urlsplit(url).hostname:
        raise BadData("the source's settings name no URL to pull (config.url)")
    return url


def _settings() -> dict[str, Any]:
    own = {"url": URL, "stock_url": URL, "records_path": _PATH, "variants_path": _PATH}
    return config_schema(own)


SPEC = ConnectorSpec(
    name="csv",
    title="CSV, Excel, JSON and XML files",
    kinds=frozenset({"url", "file", "mail"}),
    streams=frozenset({"catalogue", "stock"}),
    fetches=True,
    config_schema=_settings(),
    credentials_schema=CREDENTIALS,
    open=FileConnector,
    addresses=frozenset({"url", "stock_url"}),
    harmless=HARMLESS | {"records_path", "variants_path"},
)
