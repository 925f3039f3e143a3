"""What was used, in PostgreSQL."""

from typing import Final

from adapters.postgres.table import Table
from domain.usage.model import ModelUse

MODEL_USES: Final = Table(ModelUse, "model_uses")
