"""Cells of real files that can be mistaken for another size, weight or stock."""

import pytest

from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.quantities import parse_weight
from domain.ingestion.values.rugs import parse_rug_size
from domain.ingestion.values.stock import parse_stock

RUG = {"width": 6299, "depth": 9055}


def _get_sides(dimensions: object) -> dict[str, int]:
    sides: dict[str, dict[str, int]] = dimensions  # type: ignore[assignment]
    return {side: value["hundredths_in"] for side, value in sides.items()}


@pytest.mark.parametrize(
    ("text", "unit", "sides"),
    [
        ("160x230 12mm", "cm", RUG),
        ("160x230 12mm", None, RUG),
        ("160 x 230, 8 mm Flor", "cm", RUG),
        ("8'L x 5'W", None, {"width": 6000, "depth": 9600}),
        ("160x230 (80x150)", "cm", RUG),
    ],
)
def test_a_pile_height_or_a_second_size_does_not_change_the_sides(
    text: str, unit: str | None, sides: dict[str, int]
) -> None:
    parsed = parse_rug_size(text, unit)
    assert parsed.value is not None
    assert _get_sides(parsed.value.dimensions) == sides
    assert bool(parsed.faults) == ("(" in text)


@pytest.mark.parametrize(
    ("text", "unit"), [("80 x 3 m", None), ("160x230", "m"), ("8x10 1/2 in", None), ("160x230, 200x290", "cm")]
)
def test_implausible_rug_sizes_are_reported(text: str, unit: str | None) -> None:
    assert parse_rug_size(text, unit).faults


@pytest.mark.parametrize(
    "text",
    [
        "300 lbs weight capacity", "300 lb max", "up to 300 lbs", "peso máx. 120 kg", "maxvikt 100 kg", "nośność 100 kg",
        "нагрузка 120 кг", "Höchstgewicht 120 kg", "jusqu'à 120 kg", "12 kg/m²", "12 kg per m", "10/12 kg", "12 + 8 kg",
        "3 Kartons à 12 kg", "1 st 4 lb", "12'4 kg", "Raumgewicht: 24 kg/m3",
    ],
)  # fmt: skip
def test_loads_and_sums_are_not_weights(text: str) -> None:
    parsed = parse_weight(text)
    assert parsed.value is None
    assert parsed.faults


def test_a_weight_at_the_end_of_a_size_is_read() -> None:
    found = parse_weight('Dresser: 66"W x 18"D x 40.5"H - 155lbs.').value
    assert found is not None
    assert found["hundredths_lb"] == 15500


@pytest.mark.parametrize("text", [">0", "> 0", "0+", "mehr als 0", "over 0"])
def test_more_than_zero_is_in_stock(text: str) -> None:
    found = parse_stock(text).value
    assert found is not None
    assert (found.quantity, found.availability) == (None, "in_stock")


@pytest.mark.parametrize(
    ("text", "unit", "sides"),
    [
        ("BxTxH/SH 60x65x110/45", "cm", {"width": 2362, "depth": 2559, "height": 4331, "seat_height": 1772}),
        ("H 1,80 m B 80 T 40", "cm", {"height": 7087, "width": 3150, "depth": 1575}),
        ("183 x 0,91 m", None, {"width": 7205, "depth": 3583}),
        ("72 W 36 D 30 H (183 x 91 x 76 cm)", "in", {"width": 7200, "depth": 3600, "height": 3000}),
        ('80 x 90 (31.5" x 35.4")', "cm", {"width": 3150, "depth": 3543}),
    ],
)
def test_a_unit_applies_only_to_its_numbers(text: str, unit: str | None, sides: dict[str, int]) -> None:
    parsed = parse_dimensions(text, unit)
    assert parsed.value is not None
    assert _get_sides(parsed.value.dimensions) == sides


def test_three_numbers_joined_by_hyphens_are_reported() -> None:
    assert parse_dimensions("80-90-75 cm").faults


@pytest.mark.parametrize(
    ("header", "setting"),
    [("Bookcase width (cm)", "cm"), ("Hutch height mm", "mm"), ("Acme: Lead time (weeks)", "weeks")],
)
def test_the_unit_of_a_header_is_kept(header: str, setting: str) -> None:
    mapping = propose_column_mapping(
        ["SKU", "Title", header], [["A-1", "Chair x", "80"]] * 3, FeedSettings(currency="usd")
    )
    assert [column.settings.get("unit") for column in mapping.columns if column.column == header] == [setting]


def test_a_number_may_have_any_length() -> None:
    """A cell may have more digits than a machine number."""
    headers = ["SKU", "Title", "Price unit", "Price"]
    mapping = propose_column_mapping(headers, [["A-1", "Chair", "9" * 5000, "10.00"]], FeedSettings(currency="usd"))
    assert "Price" not in [column.column for column in mapping.columns]
