"""Conversion of schema.org products in JSON-LD to a table with one row per variant."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ..context import MIB, Context
from ..errors import BadData
from ..tables import Report, Row, Table
from . import json_records
from .json_ld import Node, extract_scripts, find_first_text, find_node_types, find_products, parse_script, to_list
from .schema_cells import COLUMNS, ReportFunction, extract_cells

MAX_PAGE_CHARS = 16 * MIB
_MAX_VARIANTS = 5_000


def read_document(ctx: Context, path: Path, *, web_page: bool) -> Iterator[Table]:
    """Return an iterator over the only table of a file: a saved web page (`web_page`), or JSON-LD. Raises BadData.

    JSON-LD is one document or, with the setting `format` of `jsonl`, one document per line.
    """
    if ctx.config.get("format") == "jsonl":
        records = json_records.iterate_lines(path, None, ctx.limits)
        return iter(
            [
                build_products_table(
                    ctx, ((number, node, None) for number, record in records for node in find_products(record))
                )
            ]
        )
    if path.stat().st_size > MAX_PAGE_CHARS:
        raise BadData(f"the file is larger than {MAX_PAGE_CHARS // MIB} MiB")
    text = path.read_bytes().decode("utf-8", errors="replace")
    found = find_page_products(ctx, 1, text) if web_page else find_products(parse_script(text))
    return iter([build_products_table(ctx, ((1, node, None) for node in found))])


def find_page_products(ctx: Context, line: int, html: str) -> Iterator[Node]:
    """Yield the products in the JSON-LD of one web page; report and skip invalid scripts.

    `line` is the line of the page in the snapshot.
    """
    for number, block in enumerate(extract_scripts(html), start=1):
        try:
            yield from find_products(parse_script(block))
        except BadData as error:
            ctx.report(Report(f"the page's JSON-LD block {number} is ignored: {error}", line))


def build_products_table(ctx: Context, nodes: Iterator[tuple[int, Node, str | None]]) -> Table:
    """Return the table of products. Raises BadData if there are no products.

    `nodes` are triples of the line in the snapshot, the product, and the URL of the product's page or None.
    """
    rows = _iterate_rows(ctx, nodes)
    first = next(rows, None)
    if first is None:
        raise BadData("no page contains a product in JSON-LD (schema.org/Product)")
    return Table(
        sheet=None,
        headers=tuple(header for header, _ in COLUMNS),
        rows=chain([first], rows),
        fields=tuple(field for _, field in COLUMNS),
    )


def _iterate_rows(ctx: Context, nodes: Iterator[tuple[int, Node, str | None]]) -> Iterator[Row]:
    for line, node, page_url in nodes:
        report = _create_report_function(ctx, line)
        group, variants = _split_variants(node)
        if len(variants) > _MAX_VARIANTS:
            report(f"only the first {_MAX_VARIANTS:,} of {len(variants):,} variants are read", "hasVariant")
        for variant, offer in variants[:_MAX_VARIANTS]:
            cells = extract_cells(group, variant, offer, page_url, report)
            if cells is not None:
                yield line, [cells.get(header) for header, _ in COLUMNS]


def _create_report_function(ctx: Context, line: int) -> ReportFunction:
    def report(detail: str, column: str | None = None) -> None:
        ctx.report(Report(detail, line, column))

    return report


def _split_variants(node: Node) -> tuple[Node | None, list[tuple[Node, Node | None]]]:
    """Return the product group of a product (or None) and its variants, each with the offer of this variant or None.

    If a product without a group has offers with different codes, each offer becomes a variant.
    """
    members = [variant for variant in to_list(node.get("hasVariant")) if isinstance(variant, dict)]
    if members:
        return node, [(variant, None) for variant in members]
    if "productgroup" in find_node_types(node):
        return node, [(node, None)]
    offers = [
        offer for offer in _list_offers(node) if find_first_text(offer.get("sku")) or find_first_text(offer.get("mpn"))
    ]
    codes = {find_first_text(offer.get("sku")) or find_first_text(offer.get("mpn")) for offer in offers}
    if len(offers) > 1 and len(codes) == len(offers) == len(_list_offers(node)):
        return node, [({"name": node.get("name"), **_select_codes(offer)}, offer) for offer in offers]
    return _find_group(node), [(node, None)]


def _list_offers(node: Node) -> list[Node]:
    found: list[Node] = []
    for offer in to_list(node.get("offers")):
        if isinstance(offer, dict):
            inner = [nested for nested in to_list(offer.get("offers")) if isinstance(nested, dict)]
            found.extend(inner or [offer])
    return found


def _select_codes(offer: Node) -> Node:
    names = ("sku", "mpn", "gtin", "gtin8", "gtin12", "gtin13", "gtin14", "url", "image")
    return {name: offer[name] for name in names if name in offer}


def _find_group(node: Node) -> Node | None:
    """Return the product group to which a variant belongs, by its isVariantOf or inProductGroupWithID, or None."""
    group = next((one for one in to_list(node.get("isVariantOf")) if isinstance(one, dict)), None)
    if group is not None and (group.get("productGroupID") or group.get("@id")):
        return {"productGroupID": group.get("productGroupID", group.get("@id")), "name": group.get("name")}
    named = find_first_text(node.get("inProductGroupWithID"))
    return {"productGroupID": named} if named else None
