"""Conversion of schema.org products to rows, one a variant; wrong markup is reported, not guessed."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ..context import MIB, Context
from ..errors import BadData
from ..tables import Report, Row, Table
from . import json_records
from .json_ld import Node, blocks, each, kinds, parsed, products, text_of
from .schema_facts import COLUMNS, Tell, facts

_LARGEST_PAGE = 16 * MIB
_MOST_VARIANTS = 5_000


def document(ctx: Context, path: Path, *, web_page: bool) -> Iterator[Table]:
    """Yield the table of one file: a saved web page, or JSON-LD as one document or one a line. Raises BadData."""
    if ctx.config.get("format") == "jsonl":
        records = json_records.lines(path, None, ctx.limits)
        return iter([table(ctx, ((number, node, None) for number, record in records for node in products(record)))])
    if path.stat().st_size > _LARGEST_PAGE:
        raise BadData(f"the file is larger than {_LARGEST_PAGE // MIB} MiB")
    text = path.read_bytes().decode("utf-8", errors="replace")
    found = of_page(ctx, 1, text) if web_page else products(parsed(text))
    return iter([table(ctx, ((1, node, None) for node in found))])


def of_page(ctx: Context, line: int, html: str) -> Iterator[Node]:
    """Yield the products of one page; report and skip blocks that are not JSON."""
    for number, block in enumerate(blocks(html), start=1):
        try:
            yield from products(parsed(block))
        except BadData as error:
            ctx.report(Report(f"the page's JSON-LD block {number} is left out: {error}", line))


def table(ctx: Context, nodes: Iterator[tuple[int, Node, str | None]]) -> Table:
    """Return the table of numbered products, each with the address of its page. Raises BadData if there are none."""
    rows = _rows(ctx, nodes)
    first = next(rows, None)
    if first is None:
        raise BadData("no page holds a product in JSON-LD (schema.org/Product)")
    return Table(
        sheet=None,
        headers=tuple(header for header, _ in COLUMNS),
        rows=chain([first], rows),
        given=tuple(field for _, field in COLUMNS),
    )


def _rows(ctx: Context, nodes: Iterator[tuple[int, Node, str | None]]) -> Iterator[Row]:
    for line, node, address in nodes:
        tell = _teller(ctx, line)
        group, variants = _variants(node)
        if len(variants) > _MOST_VARIANTS:
            tell(f"of {len(variants):,} variants only the first {_MOST_VARIANTS:,} are read", "hasVariant")
        for variant, offer in variants[:_MOST_VARIANTS]:
            cells = facts(group, variant, offer, address, tell)
            if cells is not None:
                yield line, [cells.get(header) for header, _ in COLUMNS]


def _teller(ctx: Context, line: int) -> Tell:
    def tell(detail: str, column: str | None = None) -> None:
        ctx.report(Report(detail, line, column))

    return tell


def _variants(node: Node) -> tuple[Node | None, list[tuple[Node, Node | None]]]:
    """Return the product's group (None if it has none) and its variants, each with its own offer or None.

    Offers with distinct codes are the variants of shops without groups.
    """
    own = [variant for variant in each(node.get("hasVariant")) if isinstance(variant, dict)]
    if own:
        return node, [(variant, None) for variant in own]
    if "productgroup" in kinds(node):
        return node, [(node, None)]
    offers = [offer for offer in _offers(node) if text_of(offer.get("sku")) or text_of(offer.get("mpn"))]
    codes = {text_of(offer.get("sku")) or text_of(offer.get("mpn")) for offer in offers}
    if len(offers) > 1 and len(codes) == len(offers) == len(_offers(node)):
        return node, [({"name": node.get("name"), **_code_of(offer)}, offer) for offer in offers]
    return _group_of(node), [(node, None)]


def _offers(node: Node) -> list[Node]:
    found: list[Node] = []
    for offer in each(node.get("offers")):
        if isinstance(offer, dict):
            inner = [nested for nested in each(offer.get("offers")) if isinstance(nested, dict)]
            found.extend(inner or [offer])
    return found


def _code_of(offer: Node) -> Node:
    names = ("sku", "mpn", "gtin", "gtin8", "gtin12", "gtin13", "gtin14", "url", "image")
    return {name: offer[name] for name in names if name in offer}


def _group_of(node: Node) -> Node | None:
    """Return the group that a variant on its own page names, or None."""
    group = next((one for one in each(node.get("isVariantOf")) if isinstance(one, dict)), None)
    if group is not None and (group.get("productGroupID") or group.get("@id")):
        return {"productGroupID": group.get("productGroupID", group.get("@id")), "name": group.get("name")}
    named = text_of(node.get("inProductGroupWithID"))
    return {"productGroupID": named} if named else None
