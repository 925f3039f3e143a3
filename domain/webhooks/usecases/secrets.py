"""Signatures of endpoints, and former secrets that are stored for undoing."""

import base64
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.audit.ports import AuditLog
from domain.kernel.errors import UndoUnavailable
from domain.secrets.ports import Vault
from domain.webhooks.model import Endpoint, Rotation, SealedSecrets
from domain.webhooks.ports import WebhookStore
from ports.unit_of_work import Tx

PREFIX = "whsec_"


def key_of(secret: str) -> bytes:
    """Return the key in a secret `whsec_<standard base64>`. Raises ValueError."""
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)


def signature(keys: Iterable[bytes], id: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`: `v1,<base64>` for each key, current one first, separated by spaces."""
    signed = f"{id}.{timestamp}.".encode() + body
    return " ".join("v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys)


@dataclass(frozen=True, slots=True)
class FormerSecrets:
    """Former secrets of endpoints, sealed for their audit entry and resealed for the endpoint when restored."""

    vault: Vault

    async def opened(self, tx: Tx, endpoint: Endpoint) -> dict[str, Any] | None:
        """Return what the audit log omits of an endpoint, for sealing; None if its secrets cannot be opened."""
        sealed = await tx[WebhookStore].secrets(endpoint.id)
        if sealed is None:
            return None
        try:
            secrets = [self.vault.open(one, endpoint.id)["secret"] for one in (sealed.current, sealed.previous) if one]
        except ValueError:
            return None
        rotation = endpoint.rotation and {
            "last4": endpoint.rotation.last4,
            "until": endpoint.rotation.expires_at.isoformat(),
        }
        return {
            "secrets": secrets,
            "rotation": rotation,
            "created_at": endpoint.created_at.isoformat(),
            "version": endpoint.version,
        }

    async def keep(self, tx: Tx, entry: str, opened: Mapping[str, Any] | None) -> None:
        """Store that with the audit entry, if not None."""
        if opened is not None:
            await tx[AuditLog].keep(entry, self.vault.seal(opened, entry))

    async def kept(self, tx: Tx, entry: str) -> Mapping[str, Any]:
        """Return what is stored with the audit entry. Raises UndoUnavailable."""
        sealed = await tx[AuditLog].kept(entry)
        try:
            kept = self.vault.open(sealed, entry) if sealed else None
        except ValueError:
            kept = None
        if kept is None:
            raise UndoUnavailable("The former secret is no longer kept.")
        return kept

    def resealed(self, endpoint: Endpoint, kept: Mapping[str, Any]) -> SealedSecrets:
        """Return the stored secrets sealed for the endpoint; the previous one only during its rotation."""
        current, *previous = [self.vault.seal({"secret": secret}, endpoint.id) for secret in kept["secrets"]]
        return SealedSecrets(current, previous[0] if previous and endpoint.rotation else None)


def signing(kept: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the fields of an endpoint that depend on its stored secrets."""
    stored_rotation = kept["rotation"]
    until = datetime.fromisoformat(stored_rotation["until"]) if stored_rotation else now
    rotation = Rotation(until, stored_rotation["last4"]) if now < until else None
    return {"secret_last4": kept["secrets"][0][-4:], "rotation": rotation}
