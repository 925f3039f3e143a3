"""Connector for files in any supported format, which are fetched from a URL, uploaded or sent by email."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connectors.csv import delimited, workbook
from connectors.csv.archives import open_unpacked
from connectors.csv.format_detection import detect_format
from connectors.sdk.context import Context
from connectors.sdk.credentials import CREDENTIALS, add_credentials, remove_query_parameters
from connectors.sdk.errors import BadData
from connectors.sdk.fetching import stream_file
from connectors.sdk.readers import json_records, merchant, schema_org, xml_records
from connectors.sdk.readers.records import Record, build_records_table
from connectors.sdk.readers.x12_items import read_x12_tables as x12_tables
from connectors.sdk.settings import NEUTRAL_SETTINGS, URL, build_config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched
from connectors.sdk.tables import Table

_ACCEPT = "text/csv, application/json, application/xml, */*;q=0.8"
_PATH = {"type": "string", "minLength": 1, "maxLength": 200}


class FileConnector:
    """Connector that reads one file and detects its format (docs/connectors.md#files)."""

    def fetch(self, ctx: Context) -> AbstractAsyncContextManager[Fetched]:
        """Fetch the file at the setting `url` or, for the stock stream, `stock_url`, by a conditional request."""
        url = _select_url(ctx)
        signed, headers = add_credentials(url, ctx.credentials)
        secret_names = frozenset({str((ctx.credentials or {}).get("query"))})
        shown_url = remove_query_parameters(signed, secret_names) if signed != url else None
        return stream_file(ctx, signed, {"Accept": _ACCEPT, **headers}, shown_url=shown_url)

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Unpack the file if it is an archive, detect its format, and yield its tables. Raises BadData."""
        with open_unpacked(path, ctx.limits) as file:
            yield from _read_tables(ctx, file, detect_format(file, ctx.config.get("format")))


def _read_tables(ctx: Context, path: Path, kind: str) -> Iterator[Table]:
    if kind in {"xlsx", "xlsb", "xls", "ods"}:
        return workbook.read_workbook_tables(ctx, path, kind)
    if kind == "csv":
        return (merchant.apply_merchant_fields(table, ctx) for table in delimited.read_delimited_tables(ctx, path))
    if kind == "x12":
        return x12_tables(ctx, path)
    if kind in {"html", "json_ld"}:
        return schema_org.read_document(ctx, path, web_page=kind == "html")
    return _read_record_tables(ctx, path, kind)


def _read_record_tables(ctx: Context, path: Path, kind: str) -> Iterator[Table]:
    records_path = ctx.config.get("records_path")
    if kind == "xml":
        records = xml_records.iterate_xml_records(path, records_path, ctx.limits)
        google = merchant.is_merchant_feed(path, ctx.config)
        table = merchant.build_merchant_table(records, ctx) if google else _build_table(records, ctx)
        yield replace(table, notes=xml_records.read_root_attributes(path))
        return
    reader = json_records.iterate_lines if kind == "jsonl" else json_records.iterate_document
    yield _build_table(reader(path, records_path, ctx.limits), ctx)


def _build_table(records: Iterator[Record], ctx: Context) -> Table:
    return build_records_table(records, ctx, variants_path=ctx.config.get("variants_path"))


def _select_url(ctx: Context) -> str:
    url = ctx.config.get("url")
    if ctx.stream == "stock":
        url = ctx.config.get("stock_url", url)
    if not isinstance(url, str) or not urlsplit(url).hostname:
        raise BadData("the source has no valid URL; set config.url")
    return url


def _build_settings() -> dict[str, Any]:
    own = {
        "url": {**URL, "description": "The URL of the file."},
        "stock_url": {**URL, "description": "The URL of the file for the stock stream, if different."},
        "records_path": {
            **_PATH,
            "description": "The dotted path of the records in JSON, or the element name of an XML record.",
        },
        "variants_path": {**_PATH, "description": "The dotted path of the variants in a record."},
        "default_length_unit": {
            "enum": ["cm", "mm", "m", "in", "ft"],
            "description": "The unit of lengths for which the file states none.",
        },
        "default_weight_unit": {
            "enum": ["kg", "g", "lb", "oz"],
            "description": "The unit of weights for which the file states none.",
        },
    }
    return build_config_schema(own)


SPEC = ConnectorSpec(
    name="csv",
    title="Files: CSV, Excel, OpenDocument, JSON, XML, Google Merchant, JSON-LD, X12 832 and 846",
    kinds=frozenset({"url", "file", "mail"}),
    streams=frozenset({"catalogue", "stock"}),
    can_fetch=True,
    config_schema=_build_settings(),
    credentials_schema=CREDENTIALS,
    open=FileConnector,
    address_settings=frozenset({"url", "stock_url"}),
    stock_setting="stock_url",
    neutral_settings=NEUTRAL_SETTINGS | {"records_path", "variants_path", "default_length_unit", "default_weight_unit"},
)
