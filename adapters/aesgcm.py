"""Seals values under envelope keys, so that the database alone gives nothing away.

Each sealing has a fresh data key; the data key is wrapped under a key-encryption key that is named beside it; a
value under a former one is opened and sealed anew. Layout: one byte version, one byte length of the key's name, the name, 12 bytes nonce,
48 bytes wrapped data key, 12 bytes nonce, the sealed JSON. Owner and destination are authenticated with both.
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
    """The name of a key-encryption key and the key itself, made from the deployment's secret (HKDF, RFC 5869)."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"joinery credentials").derive(secret.encode())
    return sha256(b"name" + key).hexdigest()[:16], key


class AesGcmVault:
    """Vault. Seals under the current secret's key until told otherwise; opens what any of the secrets sealed."""

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
            raise ValueError("There is no such key at hand.")
        self._in_force = key

    def key_of(self, sealed: bytes) -> str:
        return _read_head(sealed)[1]

    def seal(self, value: Mapping[str, Any], owner: str, destination: str = "", *, key: str = "") -> bytes:
        data_key, nonce, inner = AESGCM.generate_key(256), secrets.token_bytes(_NONCE), secrets.token_bytes(_NONCE)
        name = key or self._in_force
        bound = _bound(_VERSION, name, owner, destination)
        wrapped = AESGCM(self._keys[name]).encrypt(nonce, data_key, bound)
        text = json.dumps(value, separators=(",", ":")).encode()
        return _head(name) + nonce + wrapped + inner + AESGCM(data_key).encrypt(inner, text, bound)

    def open(self, sealed: bytes, owner: str, destination: str = "") -> Mapping[str, Any]:
        version, name, rest = _read_head(sealed)
        if name not in self._keys:
            raise ValueError("The credentials were sealed under a key that is not at hand.")
        nonce, wrapped = rest[:_NONCE], rest[_NONCE : _NONCE + _WRAPPED]
        inner, text = rest[_NONCE + _WRAPPED :][:_NONCE], rest[2 * _NONCE + _WRAPPED :]
        bound = _bound(version, name, owner, destination)
        try:
            data_key = AESGCM(self._keys[name]).decrypt(nonce, wrapped, bound)
            opened: Mapping[str, Any] = json.loads(AESGCM(data_key).decrypt(inner, text, bound))
        except InvalidTag:
            raise ValueError("The sealed credentials were changed, or belong to another source or address.") from None
        return opened


def _head(name: str) -> bytes:
    return bytes([_VERSION, len(name)]) + name.encode()


def _read_head(sealed: bytes) -> tuple[int, str, bytes]:
    """Version, the key's name, and the rest."""
    short = len(sealed) < 2 or sealed[0] not in _VERSIONS or len(sealed) < 2 + sealed[1] + 2 * _NONCE + _WRAPPED
    if short:
        raise ValueError("The sealed credentials are cut short or of an unknown form.")
    end = 2 + sealed[1]
    return sealed[0], sealed[2:end].decode("ascii", "replace"), sealed[end:]


def _bound(version: int, name: str, owner: str, destination: str) -> bytes:
    """What is authenticated with the value; the first version knew the owner alone."""
    if version == 1:
        return f"1|{name}|{owner}".encode()
    parts = (str(version), name, owner, destination)
    return "".join(f"{len(part)}:{part}," for part in parts).encode()
