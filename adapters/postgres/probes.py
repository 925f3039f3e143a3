"""Source probes in PostgreSQL."""

from typing import Final

from adapters.postgres.table import Table
from domain.probes.model import Probe

PROBES: Final = Table(Probe, "source_probes")
