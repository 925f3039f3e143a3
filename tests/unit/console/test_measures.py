"""Measures in the unit of the language, beside the value that the vendor stated."""

from collections.abc import Iterator
from typing import Any

import pytest

from entrypoints.console.rendering import format_field, format_measure
from entrypoints.console.translation import use_language


@pytest.fixture(autouse=True)
def _restore_language() -> Iterator[None]:
    yield
    use_language("en")


@pytest.mark.parametrize(
    ("given", "english", "german"),
    [
        ((64410, "g"), "142 lb (64,410 g)", "64,41 kg (64.410 g)"),
        ((142.0, "lb"), "142 lb", "64,41 kg (142 lb)"),
        ((80.0, "cm"), "31.5″ (80 cm)", "80 cm"),
        ((6, "ft"), "72″ (6′)", "182,88 cm (6′)"),
        ((0.1, "in"), "0.1″", "0,25 cm (0,1″)"),
        ((200, "cm"), "78.74″ (200 cm)", "200 cm"),
    ],
)
def test_a_measure_has_the_unit_of_the_language_and_the_stated_value(
    given: tuple[Any, str], english: str, german: str
) -> None:
    value = {"given": {"value": given[0], "unit": given[1]}}
    use_language("en")
    assert format_measure(value) == english
    use_language("de")
    assert format_measure(value) == german


def test_dimensions_state_the_given_values_once() -> None:
    sides = {axis: {"given": {"value": 80, "unit": "cm"}} for axis in ("width", "depth")}
    assert format_field(sides, "dimensions") == "W 31.5″ × D 31.5″ (80 cm × 80 cm)"
