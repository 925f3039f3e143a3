"""Names of `quantities` that other areas import from here."""

from domain.ingestion.values.quantities import (
    INCHES,
    MAX_HUNDREDTHS,
    METRIC,
    Measure,
    hundredths,
    length,
    parse_length,
    unit_named,
)

__all__ = ["INCHES", "MAX_HUNDREDTHS", "METRIC", "Measure", "hundredths", "length", "parse_length", "unit_named"]
