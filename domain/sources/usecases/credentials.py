"""Decryption of a source's credentials."""

from collections.abc import Mapping
from typing import Any

from domain.ingestion.ports import Connectors
from domain.secrets.ports import Vault
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx


async def decrypt_credentials(tx: Tx, vault: Vault, connectors: Connectors, source: Source) -> Mapping[str, Any] | None:
    """Return the source's decrypted credentials; None if none are stored or the connector is not loaded.

    Raises ValueError if the credentials cannot be decrypted or belong to another address or connector.
    """
    sealed, info = (
        await tx[SourceStore].load_encrypted_credentials(source.id),
        connectors.find_connector(source.connector),
    )
    return (
        vault.decrypt(sealed, source.id, info.describe_credential_destination(source.config))
        if sealed and info
        else None
    )
