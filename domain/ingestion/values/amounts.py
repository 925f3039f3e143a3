"""Names of `quantities` that other areas import from here."""

from domain.ingestion.values.quantities import Amount, amount_at, folded

__all__ = ["Amount", "amount_at", "folded"]
