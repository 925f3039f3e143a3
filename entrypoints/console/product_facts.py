"""What is known of a product or variant as words: each field with its value, its source, and why that one is believed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from entrypoints.console.formatting import words

Json = Mapping[str, Any]
REASONS: Final = {
    "only_source": "No other source states it",
    "own": "The product's own",
    "first_party": "The brand's own source",
    "vendor_agreement": "Under a vendor's agreement",
    "freshest": "Stated last",
}
_ELSEWHERE: Final = frozenset({"media", "title", "description", "brand", "category", "category_path"})
_AXES: Final = ("width", "depth", "height", "diameter")
_SIGNS: Final = {"in": "″", "ft": "′"}


@dataclass(frozen=True, slots=True)
class Fact:
    """A field: its dotted path, its name and value as words, and where it comes from."""

    path: str
    name: str
    value: str
    source: str
    reason: str
    observed_at: str | None


def facts_of(thing: Json, own_source: str, sources: Mapping[str, str]) -> list[Fact]:
    """The fields of a product or variant, but those that a page shows otherwise."""
    provenance = thing.get("provenance", {})
    found = []
    for path, value in thing["data"].items():
        origin = provenance.get(path, {})
        source = origin.get("source", own_source)
        told = value_of(path, value)
        if told:
            reason = REASONS.get(origin.get("reason", ""), "")
            found.append(
                Fact(path, name_of(path), told, sources.get(source, source), reason, origin.get("observed_at"))
            )
    return found


def plain_facts(thing: Json) -> list[tuple[str, str]]:
    """Names and values of the fields that a list of facts shows."""
    shown = ((path, value_of(path, value)) for path, value in thing["data"].items() if path not in _ELSEWHERE)
    return [(name_of(path), value) for path, value in shown if value]


def name_of(path: str) -> str:
    """A field's path as words."""
    known = {"sku": "SKU", "gtin": "GTIN", "mpn": "MPN", "gpc_brick": "GPC brick"}
    return known.get(path) or words(path)


def value_of(path: str, value: Any) -> str:
    """A field's value as words; empty for what words cannot tell."""
    if path == "media":
        return f"{len(value)} pictures" if len(value) != 1 else "1 picture"
    if path == "category_path":
        return " › ".join(value)
    if path == "dimensions":
        return dimensions_of(value)
    return _told(value)


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, Mapping):
        return measure_of(value) if "given" in value else "; ".join(_parts(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(told for one in value if (told := _told(one)))
    return "" if value is None else str(value)


def _parts(value: Json) -> Iterator[str]:
    for name, part in value.items():
        if told := _told(part):
            yield f"{words(name)}: {told}"


def measure_of(measure: Json) -> str:
    """A length or weight as it was given: `80 cm`."""
    given = measure["given"]
    number = f"{given['value']:g}" if isinstance(given["value"], float) else str(given["value"])
    unit = given["unit"]
    return f"{number}{_SIGNS[unit]}" if unit in _SIGNS else f"{number} {unit}"


def dimensions_of(dimensions: Json) -> str:
    """`W 72″ × D 40″ × H 30.25″`, and what else there is behind it."""
    main = " × ".join(f"{axis[0].upper()} {measure_of(dimensions[axis])}" for axis in _AXES if axis in dimensions)
    others = [f"{words(name).lower()} {measure_of(value)}" for name, value in dimensions.items() if name not in _AXES]
    return ", ".join(([main] if main else []) + others)
