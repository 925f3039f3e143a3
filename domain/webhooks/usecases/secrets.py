"""Signatures of webhook requests, and previous secrets of endpoints, which are stored so that changes can be undone."""

import base64
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.audit.ports import AuditLog
from domain.kernel.errors import UndoUnavailable
from domain.secrets.ports import Vault
from domain.webhooks.model import EncryptedSecrets, Endpoint, Rotation
from domain.webhooks.ports import WebhookStore
from ports.unit_of_work import Tx

SIGNING_PREFIX = "whsec_"
"""Prefix of secrets."""


def decode_key(secret: str) -> bytes:
    """Return the signing key in a secret of the form `whsec_<standard base64>`. Raises ValueError."""
    return base64.b64decode(secret.removeprefix(SIGNING_PREFIX), validate=True)


def create_signature_header(keys: Iterable[bytes], id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header `webhook-signature`: `v1,<base64>` for each key, separated by spaces."""
    signed = f"{id}.{timestamp}.".encode() + body
    return " ".join("v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys)


@dataclass(frozen=True, slots=True)
class PreviousSecrets:
    """Storage of the previous secrets of endpoints with the audit entries of their changes."""

    vault: Vault

    async def open_current(self, tx: Tx, endpoint: Endpoint) -> dict[str, Any] | None:
        """Return an endpoint's decrypted secrets, with its rotation, creation time and version, in JSON types.

        Returns None if the endpoint does not exist or the secrets cannot be decrypted.
        """
        sealed = await tx[WebhookStore].get_secrets(endpoint.id)
        if sealed is None:
            return None
        try:
            secrets = [
                self.vault.decrypt(one, endpoint.id)["secret"] for one in (sealed.current, sealed.previous) if one
            ]
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

    async def store(self, tx: Tx, entry: str, secrets: Mapping[str, Any] | None) -> None:
        """Encrypt the result of `open_current` and store it with the audit entry; None is ignored."""
        if secrets is not None:
            await tx[AuditLog].store_sealed(entry, self.vault.encrypt(secrets, entry))

    async def load_stored(self, tx: Tx, entry: str) -> Mapping[str, Any]:
        """Return the fields that `store` has stored with the audit entry. Raises UndoUnavailable if there are none."""
        sealed = await tx[AuditLog].get_sealed(entry)
        try:
            kept = self.vault.decrypt(sealed, entry) if sealed else None
        except ValueError:
            kept = None
        if kept is None:
            raise UndoUnavailable("The previous secret is no longer stored.")
        return kept

    def encrypt_for_endpoint(self, endpoint: Endpoint, stored: Mapping[str, Any]) -> EncryptedSecrets:
        """Encrypt the secrets in `stored`, a result of `load_stored`, for the endpoint.

        The previous secret is included only if the endpoint has a rotation.
        """
        current, *previous = [self.vault.encrypt({"secret": secret}, endpoint.id) for secret in stored["secrets"]]
        return EncryptedSecrets(current, previous[0] if previous and endpoint.rotation else None)


def create_secret_fields(stored: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return an endpoint's `secret_last4` and `rotation` for the secrets in `stored` (`PreviousSecrets.load_stored`).

    `rotation` is None if there was none or it has ended at `now`.
    """
    stored_rotation = stored["rotation"]
    until = datetime.fromisoformat(stored_rotation["until"]) if stored_rotation else now
    rotation = Rotation(until, stored_rotation["last4"]) if now < until else None
    return {"secret_last4": stored["secrets"][0][-4:], "rotation": rotation}
