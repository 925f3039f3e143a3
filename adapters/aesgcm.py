"""Envelope encryption of stored secrets with AES-GCM.

Each value is encrypted with a separate data key, and the data key with a key-encryption key derived from the operator's secret.
Layout: version (1 byte), length of the key-encryption key's name (1 byte), name, nonce (12 bytes), encrypted data key (48 bytes), nonce
(12 bytes), encrypted JSON. The associated data of both encryptions contains the owner and the destination of the value,
which `Vault` describes (domain/secrets/ports.py).
"""

import json
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_VERSION = 2
_VERSIONS = (1, _VERSION)
_NONCE_BYTES = 12
_WRAPPED_KEY_BYTES = 48


def derive_key(secret: str) -> tuple[str, bytes]:
    """Derive the name and the bytes of a key-encryption key from the operator's secret (HKDF, RFC 5869)."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"joinery credentials").derive(secret.encode())
    return sha256(b"name" + key).hexdigest()[:16], key


class AesGcmVault:
    """Encryption of stored values (port Vault in domain/secrets/ports.py).

    The secret `current` is active until `activate_secret` selects another. All secrets can decrypt.

    Args:
        current: The operator's secret in force.
        former: Earlier secrets of the operator.
    """

    def __init__(self, current: str, former: tuple[str, ...] = ()) -> None:
        self._keys = dict(derive_key(secret) for secret in (current, *former))
        self._active_key = self.secret_ids[0]

    @property
    def secret_ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    @property
    def active_secret_id(self) -> str:
        return self._active_key

    @property
    def current_prefix(self) -> bytes:
        return _build_header(self._active_key)

    def activate_secret(self, secret_id: str) -> None:
        if secret_id not in self._keys:
            raise ValueError(f"The vault has no key for the secret {secret_id}.")
        self._active_key = secret_id

    def parse_secret_id(self, sealed: bytes) -> str:
        return _split_header(sealed)[1]

    def encrypt(self, value: Mapping[str, Any], owner: str, destination: str = "", *, secret_id: str = "") -> bytes:
        data_key, nonce, inner = (
            AESGCM.generate_key(256),
            secrets.token_bytes(_NONCE_BYTES),
            secrets.token_bytes(_NONCE_BYTES),
        )
        name = secret_id or self._active_key
        associated_data = _build_associated_data(_VERSION, name, owner, destination)
        wrapped = AESGCM(self._keys[name]).encrypt(nonce, data_key, associated_data)
        text = json.dumps(value, separators=(",", ":")).encode()
        return _build_header(name) + nonce + wrapped + inner + AESGCM(data_key).encrypt(inner, text, associated_data)

    def decrypt(self, sealed: bytes, owner: str, destination: str = "") -> Mapping[str, Any]:
        version, name, rest = _split_header(sealed)
        if name not in self._keys:
            raise ValueError(
                "The value was encrypted with a secret that this deployment does not have. Add the secret to JOINERY_SECRET_FORMER."
            )
        nonce, wrapped = rest[:_NONCE_BYTES], rest[_NONCE_BYTES : _NONCE_BYTES + _WRAPPED_KEY_BYTES]
        inner, text = (
            rest[_NONCE_BYTES + _WRAPPED_KEY_BYTES :][:_NONCE_BYTES],
            rest[2 * _NONCE_BYTES + _WRAPPED_KEY_BYTES :],
        )
        associated_data = _build_associated_data(version, name, owner, destination)
        try:
            data_key = AESGCM(self._keys[name]).decrypt(nonce, wrapped, associated_data)
            opened: Mapping[str, Any] = json.loads(AESGCM(data_key).decrypt(inner, text, associated_data))
        except InvalidTag:
            raise ValueError("The encrypted value was modified, or belongs to another owner or destination.") from None
        return opened


def _build_header(name: str) -> bytes:
    """Return the first bytes of an encrypted value: version, length of the key's name, name."""
    return bytes([_VERSION, len(name)]) + name.encode()


def _split_header(encrypted: bytes) -> tuple[int, str, bytes]:
    """Split an encrypted value into version, name of the key-encryption key, and the rest. Raises ValueError."""
    invalid = (
        len(encrypted) < 2
        or encrypted[0] not in _VERSIONS
        or len(encrypted) < 2 + encrypted[1] + 2 * _NONCE_BYTES + _WRAPPED_KEY_BYTES
    )
    if invalid:
        raise ValueError("The encrypted value is truncated or has an unknown format.")
    end = 2 + encrypted[1]
    return encrypted[0], encrypted[2:end].decode("ascii", "replace"), encrypted[end:]


def _build_associated_data(version: int, name: str, owner: str, destination: str) -> bytes:
    """Build the associated data of both encryptions from the name of the key-encryption key, the owner and destination.

    Version 1 omits the destination. `Vault` describes owner and destination.
    """
    if version == 1:
        return f"1|{name}|{owner}".encode()
    parts = (str(version), name, owner, destination)
    return "".join(f"{len(part)}:{part}," for part in parts).encode()
