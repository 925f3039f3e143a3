"""Statements from pushed records: `{product, variants}` in the shape of the catalogue's own data."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from domain.catalogue.differences import PRICES
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement
from domain.catalogue.trimming import trim_product, trim_variant
from domain.ingestion import record_checks as values
from domain.ingestion.drafts.left_out import LeftOut
from domain.ingestion.model import FeedSettings
from domain.ingestion.record_checks import Check
from domain.ingestion.values.parsed import Parsed, refused, unreadable
from domain.ingestion.values.rugs import CONSTRUCTIONS, SHAPES
from domain.ingestion.vocabulary.fields import CARTON_PARTS, DIMENSION_PARTS
from domain.kernel.bounds import ITEMS, OFFERS, VARIANTS
from domain.kernel.problems import Problem, ProblemKind


class _Checker:
    """Collects the problems of one record."""

    def __init__(self, line: int | None, settings: FeedSettings) -> None:
        self.line = line
        self.media = partial(values.media, base=settings.media_base_url)
        self.key: str | None = None
        self.problems: list[Problem] = []

    def report(self, field: str, problem: ProblemKind, detail: str) -> None:
        self.problems.append(Problem(field, problem, detail, self.line, external_id=self.key))

    def taken(self, field: str, parsed: Parsed[Any]) -> Any:
        for fault in parsed.faults:
            self.report(field, fault.problem, fault.detail)
        return parsed.value

    def members(
        self, value: Any, checks: Mapping[str, Check], path: str, known: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """The members of an object that pass their checks; the others, and unknown ones, are reported."""
        out: dict[str, Any] = {}
        for name, item in value.items():
            field = f"{path}.{name}"
            if name in known:
                continue
            if name not in checks:
                self.report(field, ProblemKind.UNREADABLE, f"{name} is no field that a record may have here.")
            elif item is None:
                out[name] = None
            else:
                parsed = checks[name](item)
                found = self.taken(field, parsed)
                if found is not None or not (parsed.faults or self._told(field)):
                    out[name] = found  # a value that says nothing is as good as null
        return out

    def _told(self, field: str) -> bool:
        """Whether something at or below the field was just reported."""
        last = self.problems[-1].field if self.problems else ""
        return last == field or last.startswith(f"{field}.")

    def nested(self, checks: Mapping[str, Check], path: str) -> Check:
        """A check for an object with checks of its own; what is wrong inside is reported with its path."""

        def check(value: Any) -> Parsed[Any]:
            if not isinstance(value, Mapping):
                return unreadable(str(value), "is no object")
            found = self.members(value, checks, path)
            return Parsed(found if found or not value else None)

        return check

    def listed(self, checks: Mapping[str, Check], path: str) -> Check:
        """A check for a list of such objects."""

        def check(value: Any) -> Parsed[Any]:
            if not isinstance(value, list):
                return unreadable(str(value), "is no list")
            if len(value) > ITEMS:
                return refused(ProblemKind.TOO_LONG, str(value), f"has more than {ITEMS} entries")
            found = []
            for place, item in enumerate(value):
                if isinstance(item, Mapping):
                    found.append(_without_gaps(self.members(item, checks, f"{path}.{place}")))
                else:
                    self.report(f"{path}.{place}", ProblemKind.UNREADABLE, "This entry is no object.")
            return Parsed([item for item in found if item] or None)

        return check


def _without_gaps(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of a list, which replaces the list as a whole: what it removes was never there."""
    whole = {name: _without_gaps(value) if isinstance(value, dict) else value for name, value in entry.items()}
    return {name: value for name, value in whole.items() if value is not None and value != {}}


def _product_checks(checker: _Checker) -> dict[str, Check]:
    return {
        **dict.fromkeys(("title", "brand", "collection", "gpc_brick"), values.line),
        "description": values.body,
        "category": values.category,
        **dict.fromkeys(("category_path", "tags", "features"), values.lines),
        "compliance": checker.nested(values.compliance_checks(), "product.compliance"),
        "media": checker.media,
    }


def _dimensions(checker: _Checker, path: str) -> Check:
    return checker.nested(dict.fromkeys(DIMENSION_PARTS - {"length"}, values.length), path)


def _variant_checks(checker: _Checker, path: str) -> dict[str, Check]:
    carton: dict[str, Check] = dict.fromkeys(CARTON_PARTS - {"dimensions"}, values.length)
    component = {
        "name": values.line,
        "sku": values.code_text,
        "quantity": values.count(1),
        "dimensions": _dimensions(checker, f"{path}.components.dimensions"),
        "weight": values.weight,
    }
    rug = {
        "shape": values.one_of(frozenset(SHAPES)),
        "construction": values.one_of(frozenset(CONSTRUCTIONS)),
        "indoor_outdoor": values.one_of(frozenset(("indoor", "outdoor", "indoor_outdoor"))),
        "size_text": values.line,
        "nominal": values.line,
        "pile_height": values.length,
    }
    return {
        **dict.fromkeys(("sku", "mpn", "replacement_sku"), values.code_text),
        **dict.fromkeys(("title", "colour", "finish"), values.line),
        **dict.fromkeys(("assembly_required", "white_glove", "discontinued"), values.flag),
        "gtin": values.gtin,
        "axes": values.axes,
        "materials": values.lines,
        "dimensions": _dimensions(checker, f"{path}.dimensions"),
        "weight": values.weight,
        "components": checker.listed(component, f"{path}.components"),
        "cartons": checker.listed({**carton, "weight": values.weight, "count": values.count(1)}, f"{path}.cartons"),
        "freight_class": values.freight_class,
        "rug": checker.nested(rug, f"{path}.rug"),
        "media": checker.media,
    }


def _offer(checker: _Checker, given: Mapping[str, Any], path: str) -> dict[str, Any]:
    """What an offer says: prices in minor units of its one currency; None for what is to be removed."""
    beside = values.currency(given.get("currency"))
    checker.taken(f"{path}.currency", beside)
    checks: dict[str, Check] = {
        **dict.fromkeys(PRICES, values.money(beside.value)),
        "quantity": values.count(0),
        "availability": values.availability,
        "lead_time_days": values.count(0),
        "incoming": checker.listed({"quantity": values.count(1), "eta": values.eta}, f"{path}.incoming"),
    }
    found = checker.members(given, checks, path, frozenset(("external_id", "location", "currency")))
    for name in PRICES:
        if found.get(name) is None:
            continue
        minor, currency = found[name]
        if found.setdefault("currency", currency) == currency:
            found[name] = minor
        else:
            del found[name]
            checker.report(
                f"{path}.{name}",
                ProblemKind.CONFLICT,
                f"One offer has one currency; {currency} is not {found['currency']}.",
            )
    return found


def _offers(checker: _Checker, given: Any, settings: FeedSettings, path: str) -> list[OfferStatement]:
    if given is None:
        return []
    if not isinstance(given, list):
        checker.report(path, ProblemKind.UNREADABLE, "Offers are a list of objects.")
        return []
    out: dict[str, OfferStatement] = {}
    if len(given) > OFFERS:
        detail = (
            f"Too much for one product: {len(given) - OFFERS:,} offers were left out; a variant has at most {OFFERS}."
        )
        checker.report(path, ProblemKind.TOO_LONG, detail)
    for place, item in enumerate(given[:OFFERS]):
        if not isinstance(item, Mapping):
            checker.report(f"{path}.{place}", ProblemKind.UNREADABLE, "This offer is no object.")
            continue
        location = values.line(item.get("location", "")).value or settings.warehouse or "default"
        data = _offer(checker, item, f"{path}.{place}")
        if location in out:
            checker.report(
                f"{path}.{place}", ProblemKind.DUPLICATE, f"A second offer at {location}; the first is kept."
            )
        elif data:
            out[location] = OfferStatement(location, data)  # type: ignore[arg-type]
    return list(out.values())


def _variant(
    checker: _Checker, given: Any, settings: FeedSettings, place: int, taken: set[str]
) -> VariantStatement | None:
    path = f"variants.{place}"
    if not isinstance(given, Mapping):
        checker.report(path, ProblemKind.UNREADABLE, "This variant is no object.")
        return None
    key = values.code_text(given.get("external_id", given.get("sku", ""))).value
    if key is None:
        checker.report(f"{path}.external_id", ProblemKind.MISSING, "A variant needs an external_id.")
        return None
    if key in taken:
        checker.report(
            f"{path}.external_id", ProblemKind.DUPLICATE, f"A second variant {key} in one record; the first is kept."
        )
        return None
    taken.add(key)
    data = checker.members(given, _variant_checks(checker, path), path, frozenset(("external_id", "offers")))
    offers = _offers(checker, given.get("offers"), settings, f"{path}.offers")
    emptied = "offers" in given and given["offers"] is None
    return VariantStatement(key, data, offers, restated=emptied)  # type: ignore[arg-type]


def from_record(
    record: Mapping[str, Any], settings: FeedSettings, line: int | None = None
) -> tuple[ProductStatement | None, list[Problem]]:
    """What one pushed record says, to be merged (domain/ingestion/merging.py), and what is wrong with it.

    None when nothing of it can be kept. `line` is the record's place in its batch, from 1. Measures are `{value, unit}`, money
    `{amount, currency}` in major units; both may also be as the API answers them. A product without `external_id` cannot
    be kept; a bad value loses only itself, and what was there stays.
    """
    checker = _Checker(line, settings)
    product = record.get("product") if isinstance(record, Mapping) else None
    if not isinstance(product, Mapping):
        checker.report("product", ProblemKind.MISSING, "A record needs a product.")
        return None, checker.problems
    key = checker.key = values.code_text(product.get("external_id", "")).value
    if key is None:
        checker.report("product.external_id", ProblemKind.MISSING, "A product needs an external_id.")
        return None, checker.problems
    for name in record:
        if name not in ("product", "variants"):
            checker.report(str(name), ProblemKind.UNREADABLE, f"{name} is no part of a record.")
    data = checker.members(
        product, _product_checks(checker), "product", frozenset(("external_id", "discontinued", "status"))
    )
    variants = _variants(checker, record.get("variants", []), settings)
    gone = _discontinued(checker, product)
    checker.problems += _trimmed(data, variants, line, key)
    emptied = "variants" in record and record["variants"] is None
    statement = ProductStatement(key, data, variants, gone, emptied, _alone(product, record))  # type: ignore[arg-type]
    return statement, checker.problems


def _variants(checker: _Checker, given: Any, settings: FeedSettings) -> list[VariantStatement]:
    if given is None:
        return []
    if not isinstance(given, list):
        checker.report("variants", ProblemKind.UNREADABLE, "Variants are a list of objects.")
        return []
    taken: set[str] = set()
    found = [_variant(checker, item, settings, place, taken) for place, item in enumerate(given)]
    return [variant for variant in found if variant is not None]


def _alone(product: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether the record names offers, prices and stock, and nothing else of the product."""
    variants = record.get("variants")
    parts = [item for item in variants if isinstance(item, Mapping)] if isinstance(variants, list) else []
    return len(product) == 1 and all(item.keys() <= {"external_id", "offers"} for item in parts)


def _trimmed(data: dict[str, Any], variants: list[VariantStatement], line: int | None, key: str) -> list[Problem]:
    """What is too much for one product (domain/kernel/bounds.py) leaves the record; one problem for each field."""
    left_out = LeftOut()
    left_out.add_all(trim_product(data), "product.", line)
    if len(variants) > VARIANTS:
        left_out.add("variants", len(variants) - VARIANTS, line)
        del variants[VARIANTS:]
    for variant in variants:
        left_out.add_all(trim_variant(variant.data), "variants.", line)  # type: ignore[arg-type]
    return [replace(problem, external_id=key) for problem in left_out.problems()]


def _discontinued(checker: _Checker, product: Mapping[str, Any]) -> bool | None:
    """Whether the product says that it is discontinued; None when it says nothing of that, False for null."""
    if product.get("discontinued") is not None:
        said: bool | None = checker.taken("product.discontinued", values.flag(product["discontinued"]))
        return said
    if product.get("status") is not None:
        return str(product["status"]).lower() == "discontinued"
    return False if "discontinued" in product or "status" in product else None
