"""Uploads in PostgreSQL."""

from typing import Final

from adapters.postgres.table import Table
from domain.uploads.model import Upload

UPLOADS: Final = Table(Upload, "uploads")
