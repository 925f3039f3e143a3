"""Decryption of a source's credentials."""

from collections.abc import Mapping
from typing import Any

from domain.ingestion.ports import Connectors
from domain.secrets.ports import Vault
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx


async def opened_credentials(tx: Tx, vault: Vault, connectors: Connectors, source: Source) -> Mapping[str, Any] | None:
    """Return the source's credentials, or None without credentials or connector.

    Raises ValueError if they belong to another address or connector, or were sealed with a secret that is lost.
    """
    sealed, info = await tx[SourceStore].sealed(source.id), connectors.info(source.connector)
    return vault.open(sealed, source.id, info.destination(source.config)) if sealed and info else None
