"""Comparison of whole files with what `joinery read` returns, by an `*.expected.json` beside each file.

An expectation states the file, further arguments of `joinery read`, and products in the form of its JSON output. Only stated
values are compared; null means that the file states no value:

    {"file": "prices.csv", "arguments": ["--currency", "eur"], "products": [
        {"key": "AB-1", "data": {"title": "Oak table"}, "variants": [
            {"key": "AB-1", "data": {"dimensions": {"width": {"hundredths_in": 7087}}}, "offers": [{"price": 89900}]}]}]}

A product or variant is found by its `key`, which can be the SKU of one of its variants, or by `"data": {"sku": "AB-1"}`; an offer by
its `location`, if stated.
"""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERDICTS = ("right", "lost", "reported", "wrong")
_SUFFIX = ".expected.json"
_READ_SECONDS = 600


@dataclass(frozen=True, slots=True)
class EvaluatedValue:
    """Expected value with the value that was read.

    Attributes:
        family: First part of the path, such as `dimensions`; `items` for a product or variant as a whole.
        place: Keys and path of the value.
        verdict: `right`, `lost` if no value was read, `reported` if another value was read and a problem concerns the item
            and the family, or `wrong`.
    """

    family: str
    place: str
    expected: Any
    actual: Any
    verdict: str


def evaluate_folder(folder: Path) -> Iterator[tuple[str, list[EvaluatedValue]]]:
    """Yield the name of each expected file in a folder, with the evaluated values."""
    for path in sorted(folder.rglob(f"*{_SUFFIX}")):
        expectation = json.loads(path.read_text("utf-8"))
        reading = _read_file(path.parent / expectation["file"], expectation.get("arguments", ()))
        yield expectation["file"], list(evaluate_reading(expectation["products"], reading))


def format_table(values: Iterable[EvaluatedValue]) -> Iterator[str]:
    """Yield the lines of a table with the number of values by family and verdict."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for value in values:
        counts[value.family][value.verdict] += 1
        counts["all"][value.verdict] += 1
    yield f"  {'family':<16}{'values':>8}" + "".join(f"{verdict:>10}" for verdict in VERDICTS)
    for family in sorted(counts, key=lambda name: (name != "all", name)):
        total = counts[family].total()
        shares = "".join(f"{counts[family][verdict] / total:>10.1%}" for verdict in VERDICTS)
        yield f"  {family:<16}{total:>8}{shares}"


def evaluate_reading(products: Iterable[Mapping[str, Any]], reading: Mapping[str, Any]) -> Iterator[EvaluatedValue]:
    """Yield the expected values of products, compared with the JSON output of `joinery read`.

    Products that were read although none is expected are wrong values of the family `items`.
    """
    reported = {
        (problem.get("external_id"), str(problem.get("field", "")).partition(".")[0]) for problem in reading["problems"]
    }
    remaining = list(reading["products"])
    for product in products:
        actual = _take_item(remaining, product)
        key = actual["key"] if actual else str(product.get("key"))
        yield _evaluate_item(key, actual)
        yield from _evaluate_values(product.get("data", {}), (actual or {}).get("data"), key, key, reported)
        variants = list(actual["variants"]) if actual else []
        for variant in product.get("variants", ()):
            found = _take_item(variants, variant)
            place = f"{key} {found['key'] if found else variant.get('key')}"
            yield _evaluate_item(place, found)
            yield from _evaluate_values(variant.get("data", {}), (found or {}).get("data"), place, key, reported)
            for offer in variant.get("offers", ()):
                offers = found["offers"] if found else []
                same = (one for one in offers if offer.get("location", one["location"]) == one["location"])
                yield from _evaluate_values(offer, next(same, {}), place, key, reported)
    for unexpected in remaining:
        yield EvaluatedValue("items", unexpected["key"], None, unexpected["key"], "wrong")


def _read_file(path: Path, arguments: Iterable[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "entrypoints.cli.main", "read", str(path), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=_READ_SECONDS)
    try:
        reading: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"products": [], "problems": [], "failure": done.stderr}
    return reading


def _take_item(items: list[dict[str, Any]], expected: Mapping[str, Any]) -> dict[str, Any] | None:
    """Remove the item with the expected key or SKU from a list, and return it; None if there is none."""
    code = expected.get("key", expected.get("data", {}).get("sku"))
    codes_by_item = [
        (item["key"], *(part["data"].get("sku") for part in (item, *item.get("variants", ())))) for item in items
    ]
    same = [codes[0] == code for codes in codes_by_item] + [code in codes for codes in codes_by_item]
    return items.pop(same.index(True) % len(items)) if True in same else None


def _evaluate_item(place: str, actual: Mapping[str, Any] | None) -> EvaluatedValue:
    return EvaluatedValue("items", place, place, actual and place, "right" if actual else "lost")


def _evaluate_values(
    expected: Mapping[str, Any], actual: Any, place: str, key: str, reported: set[tuple[Any, str]], family: str = ""
) -> Iterator[EvaluatedValue]:
    for name, value in expected.items():
        head = family or name
        found = actual.get(name) if isinstance(actual, Mapping) else None
        if isinstance(value, Mapping):
            yield from _evaluate_values(value, found, f"{place} {name}", key, reported, head)
            continue
        is_reported = (key, head) in reported
        verdict = "right" if found == value else "reported" if is_reported else "lost" if found is None else "wrong"
        yield EvaluatedValue(head, f"{place} {name}", value, found, verdict)
