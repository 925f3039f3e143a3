"""How columns about the product are read."""

from collections.abc import Callable
from typing import Any, Final

from domain.catalogue.categories import by_google
from domain.ingestion.columns.readers import CellReader, ReaderFactory
from domain.ingestion.drafts.draft import RowDraft
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.values.countries import parse_country
from domain.ingestion.values.media import addresses, list_text
from domain.ingestion.values.parsed import Parsed, unreadable
from domain.ingestion.values.text import as_text, body_of_text, clean, line_of_text, stated
from domain.ingestion.values.words import (
    category_levels,
    parse_boolean,
    parse_brick,
    parse_count,
    parse_features,
    parse_number,
    parse_status,
    parse_sturdy,
    parse_tags,
    parse_tsca,
    parse_warning,
)

COMPLIANCE: Final[dict[str, Callable[[str], Parsed[Any]]]] = {
    "tsca_title_vi": parse_tsca,
    "sturdy_act": parse_sturdy,
    "stability_rating": parse_number,
    "ca_tb117_2013": parse_boolean,
    "prop65_warning": parse_warning,
    "prop65_chemicals": parse_tags,
    "country_of_origin": parse_country,
}


def _text(column: Column, settings: FeedSettings) -> CellReader:
    name, header = column.field, column.column
    parse = body_of_text if name == "description" else parse_brick if name == "gpc_brick" else line_of_text

    stands_in = "fallback" in column.settings

    def read(row: RowDraft, text: str, cell: Any) -> None:
        product = row.product
        known = product.data.get(name)
        if known is None:
            if (value := row.taken(name, header, parse(text))) is not None:
                product.data[name] = value  # type: ignore[literal-required]
                product.given_by[name] = row.line
        elif (
            not stands_in
            and product.given_by.get(name) != row.line
            and (other := parse(text).value) not in (None, known)
        ):
            if name == "title" and product.grouped:
                row.variant["title"] = other
            else:
                product.differs(name, row.line, header)

    return read


def _category(column: Column, settings: FeedSettings) -> CellReader:
    place, header = int(column.field.rpartition(".")[2]) if "." in column.field else None, column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        levels = tuple(map(clean, map(as_text, cell))) if isinstance(cell, list) else category_levels(text)
        named = tuple(level for level in levels if not level.isdecimal()) if any(map(str.isdecimal, levels)) else levels
        if not named:
            if levels:
                row.taken("category_path", header, unreadable(text, "is a number, not the name of a category"))
            return
        product = row.product
        known = product.levels.get(place) if place is not None else product.path
        if known:
            if named != known:
                # A further row files the item elsewhere, too.
                product.tags[" > ".join(named)] = None
        elif place is None:
            product.path = named
        else:
            product.levels[place] = named

    return read


def _google_category(column: Column, settings: FeedSettings) -> CellReader:
    def read(row: RowDraft, text: str, cell: Any) -> None:
        # A bare number is Google's id of a category, not a path.
        number = text.strip()
        if number.isdecimal():
            if len(number) < 9 and (category := by_google(int(number))):
                row.product.data.setdefault("category", category)
        elif not row.product.google_category:
            row.product.google_category = category_levels(text)

    return read


def _list(column: Column, settings: FeedSettings) -> CellReader:
    header, tags = column.column, column.field == "tags"

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if isinstance(cell, list):
            values = tuple(found for item in cell if (found := stated(as_text(item))))
        else:
            values = row.taken(column.field, header, parse_tags(text) if tags else parse_features(text)) or ()
        target = row.product.tags if tags else row.product.features
        for value in values:
            target[value] = None

    return read


def _compliance(column: Column, settings: FeedSettings) -> CellReader:
    name, header = column.field.partition(".")[2], column.column
    parse = COMPLIANCE[name]

    def read(row: RowDraft, text: str, cell: Any) -> None:
        compliance = row.product.compliance
        if name not in compliance and (value := row.taken(column.field, header, parse(text))) is not None:
            compliance[name] = list(value) if isinstance(value, tuple) else value

    return read


def _alts(cell: list[Any], base: str | None) -> dict[str, str]:
    """The texts that a JSON list of pictures gives for their addresses."""
    given = {
        list_text(item): alt
        for item in cell
        if isinstance(item, dict) and isinstance(item.get("alt"), str) and (alt := stated(item["alt"]))
    }
    if base is None:
        return given
    return {url: alt for text, alt in given.items() for url in addresses(text, base).urls}


def _media(column: Column, settings: FeedSettings) -> CellReader:
    header, hero, variant = column.column, column.field == "media.hero", column.field == "variant_media"
    base = settings.media_base_url

    def read(row: RowDraft, text: str, cell: Any) -> None:
        found = addresses(list_text(cell) if isinstance(cell, list | dict) else text, base)
        if found.faults and not any(problem.field == "media" for problem in row.product.problems):
            # One such problem says it for all the pictures of a product.
            row.report("media", header, found.faults)
        if not found.urls:
            return
        if isinstance(cell, list):
            row.media_alts = {**(row.media_alts or {}), **_alts(cell, base)}
        if variant:
            row.variant_media += found.urls
            return
        row.media_urls += found.urls
        if hero and row.product.hero is None:
            row.product.hero = found.urls[0]

    return read


def _media_fact(column: Column, settings: FeedSettings) -> CellReader:
    alt, header = column.field == "media_alt", column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if alt:
            row.media_alt = row.taken("media", header, line_of_text(text))
        else:
            row.media_position = row.taken("media", header, parse_count(text))

    return read


def _status(column: Column, settings: FeedSettings) -> CellReader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        gone = row.taken("status", header, parse_status(text))
        if gone is None:
            return
        row.product.discontinued.add(gone)
        if gone:
            row.variant["discontinued"] = True

    return read


def _option_name(column: Column, settings: FeedSettings) -> CellReader:
    place = int(column.field.rpartition(".")[2])

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if name := stated(text):
            row.product.option_names.setdefault(place, name)

    return read


def _silent(column: Column, settings: FeedSettings) -> CellReader:
    def read(row: RowDraft, text: str, cell: Any) -> None:
        return

    return read


FACTORIES: Final[dict[str, ReaderFactory]] = {
    **dict.fromkeys(("title", "brand", "collection", "description", "gpc_brick"), _text),
    "category_path": _category,
    "google_category": _google_category,
    "tags": _list,
    "features": _list,
    "compliance": _compliance,
    "media": _media,
    "variant_media": _media,
    "media_alt": _media_fact,
    "media_position": _media_fact,
    "status": _status,
    "option_name": _option_name,
    "product_key": _silent,
    "category": _silent,
}
