"""Public signature keys in a provider's JSON Web Key Set (RFC 7517), checked before they are imported.

If an RSA key has `d` but no primes, its import factors the modulus in Python. A large modulus or exponent makes each
verification expensive. Neither can be interrupted, so the values are limited before a library receives them.
"""

import base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet, import_key

MAX_KEYS = 50
"""Maximum keys in a key set."""
_PUBLIC_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "RSA": frozenset({"kty", "kid", "alg", "use", "n", "e"}),
    "EC": frozenset({"kty", "kid", "alg", "use", "crv", "x", "y"}),
    "OKP": frozenset({"kty", "kid", "alg", "use", "crv", "x"}),
}
_CURVES = frozenset({"P-256", "P-384", "P-521", "Ed25519", "Ed448"})
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Members of private and symmetric keys (RFC 7518 §6.2.2, §6.3.2, §6.4)."""
_MAX_TEXT_CHARS = 500
_MAX_MODULUS_CHARS = 1366
"""Maximum characters of an RSA modulus: 8,192 bits in base64url."""
_MAX_COORDINATE_CHARS = 88
"""Maximum characters of a coordinate of an elliptic-curve key: a coordinate of P-521 in base64url."""
_MODULUS_BITS = range(2048, 8192 + 1)
"""Permitted sizes of an RSA modulus in bits; RFC 7518 §3.3 requires at least 2,048."""


class UnusableKeySet(ValueError):
    """Key set without a usable key, or with a key that must not be published. Users may see the message."""


def import_public_keys(document: Mapping[str, Any]) -> KeySet:
    """Import the signature keys in a key set.

    Keys that lack members, cannot be decoded, or have another type, use, curve or size are ignored, as RFC 7517 §5 recommends.

    Raises:
        UnusableKeySet: The document is malformed, contains a private or symmetric key, or has no usable key.
    """
    members = document.get("keys")
    if not isinstance(members, list) or len(members) > MAX_KEYS:
        raise UnusableKeySet(f"the key set has no list of keys, or more than {MAX_KEYS} keys")
    keys = [key for key in members if isinstance(key, dict)]
    if any(not _PRIVATE_MEMBERS.isdisjoint(key) for key in keys):
        raise UnusableKeySet("the key set contains a private or symmetric key")
    public = [
        {name: key[name] for name in _PUBLIC_MEMBERS[key["kty"]] if name in key} for key in keys if _is_usable(key)
    ]
    imported: list[Key] = []
    for key in public:
        with suppress(JoseError, KeyError, TypeError, ValueError, AttributeError):
            imported.append(import_key(key))
    if not imported:
        raise UnusableKeySet("the key set has no usable key")
    return KeySet(imported)


def _is_usable(key: Mapping[str, Any]) -> bool:
    """Return whether the key is a signature key of a supported type, curve and size."""
    texts = [key.get(name, "") for name in ("kty", "kid", "alg", "use", "crv")]
    if not all(isinstance(text, str) and len(text) <= _MAX_TEXT_CHARS for text in texts):
        return False
    if key.get("use", "sig") != "sig":
        return False
    if key.get("kty") == "RSA":
        modulus, exponent = _decode_integer(key.get("n"), _MAX_MODULUS_CHARS), _decode_integer(key.get("e"), 8)
        return (
            modulus.bit_length() in _MODULUS_BITS and modulus % 2 == 1 and 2 < exponent < 1 << 32 and exponent % 2 == 1
        )
    if key.get("kty") not in _PUBLIC_MEMBERS or key.get("crv") not in _CURVES:
        return False
    coordinates = [key.get("x"), key.get("y", "")]
    return all(isinstance(text, str) and len(text) <= _MAX_COORDINATE_CHARS for text in coordinates)


def _decode_integer(text: object, max_chars: int) -> int:
    """Decode a Base64urlUInt (RFC 7518 §2) of at most `max_chars` characters; return 0 for any other value."""
    if not isinstance(text, str) or not text.isascii() or len(text) > max_chars:
        return 0
    try:
        return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return 0
