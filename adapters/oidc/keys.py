"""Public signature keys of a provider's JSON Web Key Set (RFC 7517), checked before they are imported.

Importing an RSA key that states `d` without primes factors the modulus in Python; a large modulus or exponent makes each
verification expensive. Neither can be interrupted, so the document's values are bounded before a library sees them.
"""

import base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet, import_key

MOST_KEYS = 50
_PUBLIC: Final[Mapping[str, frozenset[str]]] = {
    "RSA": frozenset({"kty", "kid", "alg", "use", "n", "e"}),
    "EC": frozenset({"kty", "kid", "alg", "use", "crv", "x", "y"}),
    "OKP": frozenset({"kty", "kid", "alg", "use", "crv", "x"}),
}
_CURVES = frozenset({"P-256", "P-384", "P-521", "Ed25519", "Ed448"})
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Private and symmetric members (RFC 7518 §6.2.2, §6.3.2, §6.4)."""
_LONGEST_TEXT = 500
_LONGEST_MODULUS = 1366
"""Base64url characters of 8,192 bits."""
_LONGEST_COORDINATE = 88
"""Base64url characters of a P-521 coordinate."""
_MODULUS_BITS = range(2048, 8192 + 1)
"""RFC 7518 §3.3 requires at least 2,048 bits."""


class UnusableKeys(ValueError):
    """Key set without a usable key, or one that must not be used; the message may be shown."""


def import_public_keys(document: Mapping[str, Any]) -> KeySet:
    """Import the signature keys of a key set.

    Keys that lack members, cannot be read, or are of another type, use, curve or size are ignored, as RFC 7517 §5 recommends.

    Raises:
        UnusableKeys: The document is malformed, states a private or symmetric key, or has no usable key.

    """
    members = document.get("keys")
    if not isinstance(members, list) or len(members) > MOST_KEYS:
        raise UnusableKeys(f"its key set must be a list of at most {MOST_KEYS} keys")
    keys = [key for key in members if isinstance(key, dict)]
    if any(not _PRIVATE.isdisjoint(key) for key in keys):
        raise UnusableKeys("its key set states a private or symmetric key")
    public = [{name: key[name] for name in _PUBLIC[key["kty"]] if name in key} for key in keys if _is_usable(key)]
    imported: list[Key] = []
    for key in public:
        with suppress(JoseError, KeyError, TypeError, ValueError, AttributeError):
            imported.append(import_key(key))
    if not imported:
        raise UnusableKeys("its key set has no usable key")
    return KeySet(imported)


def _is_usable(key: Mapping[str, Any]) -> bool:
    texts = [key.get(name, "") for name in ("kty", "kid", "alg", "use", "crv")]
    if not all(isinstance(text, str) and len(text) <= _LONGEST_TEXT for text in texts):
        return False
    if key.get("use", "sig") != "sig":
        return False
    if key.get("kty") == "RSA":
        modulus, exponent = _integer(key.get("n"), _LONGEST_MODULUS), _integer(key.get("e"), 8)
        return (
            modulus.bit_length() in _MODULUS_BITS and modulus % 2 == 1 and 2 < exponent < 1 << 32 and exponent % 2 == 1
        )
    if key.get("kty") not in _PUBLIC or key.get("crv") not in _CURVES:
        return False
    coordinates = [key.get("x"), key.get("y", "")]
    return all(isinstance(text, str) and len(text) <= _LONGEST_COORDINATE for text in coordinates)


def _integer(text: object, longest: int) -> int:
    """Decode a Base64urlUInt (RFC 7518 §2) of bounded length; return 0 for anything else."""
    if not isinstance(text, str) or not text.isascii() or len(text) > longest:
        return 0
    try:
        return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return 0
