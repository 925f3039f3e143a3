"""Names of `quantities` that other areas import from here."""

from domain.ingestion.values.quantities import POUNDS, parse_weight, weight, weight_unit_named

__all__ = ["POUNDS", "parse_weight", "weight", "weight_unit_named"]
