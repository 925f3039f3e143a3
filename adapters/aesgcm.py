"""Envelope encryption of secrets with AES-GCM, so that the database alone does not reveal them.

Each value has its own data key, which is wrapped under a named key-encryption key derived from the deployment's secret.
Layout: version (1 byte), length of the key's name (1 byte), name, nonce (12 bytes), wrapped data key (48 bytes), nonce
(12 bytes), encrypted JSON. Owner and destination are associated data of both encryptions.
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
_NONCE = 12
_WRAPPED = 48


def derive(secret: str) -> tuple[str, bytes]:
    """Derive the name and the bytes of a key-encryption key from the deployment's secret (HKDF, RFC 5869)."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"joinery credentials").derive(secret.encode())
    return sha256(b"name" + key).hexdigest()[:16], key


class AesGcmVault:
    """Vault that seals under the current secret's key until `use` selects another, and opens values of all given secrets."""

    def __init__(self, current: str, former: tuple[str, ...] = ()) -> None:
        self._keys = dict(derive(secret) for secret in (current, *former))
        self._in_force = self.keys[0]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._keys)

    @property
    def in_force(self) -> str:
        return self._in_force

    @property
    def stamp(self) -> bytes:
        return _head(self._in_force)

    def use(self, key: str) -> None:
        if key not in self._keys:
            raise ValueError("The vault has no key with this name.")
        self._in_force = key

    def key_of(self, sealed: bytes) -> str:
        return _split_head(sealed)[1]

    def seal(self, value: Mapping[str, Any], owner: str, destination: str = "", *, key: str = "") -> bytes:
        data_key, nonce, inner = AESGCM.generate_key(256), secrets.token_bytes(_NONCE), secrets.token_bytes(_NONCE)
        name = key or self._in_force
        associated_data = _associated_data(_VERSION, name, owner, destination)
        wrapped = AESGCM(self._keys[name]).encrypt(nonce, data_key, associated_data)
        text = json.dumps(value, separators=(",", ":")).encode()
        return _head(name) + nonce + wrapped + inner + AESGCM(data_key).encrypt(inner, text, associated_data)

    def open(self, sealed: bytes, owner: str, destination: str = "") -> Mapping[str, Any]:
        version, name, rest = _split_head(sealed)
        if name not in self._keys:
            raise ValueError("The credentials were sealed under a key that this deployment does not have.")
        nonce, wrapped = rest[:_NONCE], rest[_NONCE : _NONCE + _WRAPPED]
        inner, text = rest[_NONCE + _WRAPPED :][:_NONCE], rest[2 * _NONCE + _WRAPPED :]
        associated_data = _associated_data(version, name, owner, destination)
        try:
            data_key = AESGCM(self._keys[name]).decrypt(nonce, wrapped, associated_data)
            opened: Mapping[str, Any] = json.loads(AESGCM(data_key).decrypt(inner, text, associated_data))
        except InvalidTag:
            raise ValueError("The sealed credentials were modified, or belong to another source or address.") from None
        return opened


def _head(name: str) -> bytes:
    return bytes([_VERSION, len(name)]) + name.encode()


def _split_head(sealed: bytes) -> tuple[int, str, bytes]:
    """Split a sealed value into its version, the key's name and the rest. Raises ValueError."""
    invalid = len(sealed) < 2 or sealed[0] not in _VERSIONS or len(sealed) < 2 + sealed[1] + 2 * _NONCE + _WRAPPED
    if invalid:
        raise ValueError("The sealed credentials are truncated or have an unknown format.")
    end = 2 + sealed[1]
    return sealed[0], sealed[2:end].decode("ascii", "replace"), sealed[end:]


def _associated_data(version: int, name: str, owner: str, destination: str) -> bytes:
    """Return the associated data; version 1 contains the owner only."""
    if version == 1:
        return f"1|{name}|{owner}".encode()
    parts = (str(version), name, owner, destination)
    return "".join(f"{len(part)}:{part}," for part in parts).encode()
