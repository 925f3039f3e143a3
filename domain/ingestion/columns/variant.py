"""Names of `readers` that other areas import from here."""

from domain.ingestion.columns.readers import components_of

__all__ = ["components_of"]
