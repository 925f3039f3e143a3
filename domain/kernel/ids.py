"""Public IDs: a prefix, an underscore and 22 base62 characters (docs/conventions.md#identifiers).

The 22 characters encode a UUIDv7 (RFC 9562), so that IDs sort bytewise by time of creation, which database indexes
require.
"""

import re
import secrets
from random import Random
from threading import Lock

from domain.kernel.clock import CLOCK

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LENGTH = 22
NOUNS = {
    "prod": "a product",
    "var": "a variant",
    "ofr": "an offer",
    "src": "a source",
    "run": "a run",
    "evt": "an event",
    "cat": "a catalogue",
    "ctg": "a category",
    "prb": "a website check",
    "req": "a request log",
    "crp": "a credit purchase",
    "mpr": "a match pair",
    "mem": "an assistant memory",
    "whe": "a webhook endpoint",
    "img": "an image",
    "org": "an organisation",
    "key": "an API key",
    "usr": "a user",
    "app": "an OAuth app",
    "map": "a mapping",
    "upl": "an upload",
    "exp": "an export",
    "sxp": "a scheduled export",
    "pro": "a proposal",
    "agt": "an agent",
    "mrg": "a merge",
    "cor": "a correction",
    "cob": "a bulk correction",
    "aud": "an audit entry",
    "acc": "an agreement acceptance",
    "agr": "a version of an agreement",
    "cnv": "a conversation",
    "dlv": "a webhook delivery",
    "pub": "a publication run",
    "inm": "an inbound message",
    "jud": "a judgement",
    "inv": "an invoice",
    "chk": "a stock check",
    "inc": "a status incident",
    "cre": "a credit entry",
    "crl": "a credit lot",
    "vnd": "a vendor profile",
    "vcl": "a claim",
    "vci": "a claim invitation",
    "rec": "a record",
    "job": "a job",
    "use": "a language model request",
    "ses": "a session",
    "sec": "a security event",
    "mail": "an outgoing message",
    "mbi": "an invitation",
    "pky": "a passkey",
    "grt": "a consent for an app",
    "ntr": "a notification rule",
    "ntf": "a notification",
    "svw": "a saved view",
    "blk": "a bulk action",
    "cmp": "a link to a comparison",
}
"""The noun for each prefix of IDs, with its article."""
PREFIXES = frozenset(NOUNS)

_PAIRS = tuple(a + b for a in ALPHABET for b in ALPHABET)
_BODY = re.compile(r"[0-9A-Za-z]{22}")
_MAX = 1 << 128
_TEN_DIGITS = 3844**5


def encode_base62(number: int) -> str:
    """Return a 128-bit number as 22 base62 characters, most significant first."""
    rest, low = divmod(number, _TEN_DIGITS)
    top, high = divmod(rest, _TEN_DIGITS)
    return _PAIRS[top] + _encode_ten(high) + _encode_ten(low)


def _encode_ten(number: int) -> str:
    """Return a number below 62^10 as ten base62 characters."""
    number, e = divmod(number, 3844)
    number, d = divmod(number, 3844)
    number, c = divmod(number, 3844)
    a, b = divmod(number, 3844)
    return _PAIRS[a] + _PAIRS[b] + _PAIRS[c] + _PAIRS[d] + _PAIRS[e]


def build_uuid7(milliseconds: int, random_bits: int) -> int:
    """Return a UUIDv7 (RFC 9562) as a 128-bit number.

    Args:
        milliseconds: The time in milliseconds since 1970.
        random_bits: The random part; only the lowest 74 bits are used.
    """
    high = random_bits >> 62 & 0xFFF
    low = random_bits & 0x3FFF_FFFF_FFFF_FFFF
    return (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low


_MAX_BACKWARD_STEP_MS = 60_000
"""Maximum backward step of the clock that IDs ignore; a larger step corrects a wrong time, and IDs use the new time."""


class _Sequence:
    """Generates increasing UUIDs in this process (RFC 9562 §6.2, method 2), unless a wrong clock is corrected."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset the generator with a new random seed."""
        self._lock = Lock()
        self._random = Random(secrets.randbits(256))  # noqa: S311  ids are unique, not secret
        self._milliseconds = 0
        self._bits = 0

    def next(self) -> int:
        """Return the next UUIDv7 as a number."""
        now = CLOCK.unix_ms()
        with self._lock:
            if now > self._milliseconds or now < self._milliseconds - _MAX_BACKWARD_STEP_MS:
                self._milliseconds, self._bits = now, self._random.getrandbits(73)
            else:
                self._bits += self._random.getrandbits(40) + 1
                if self._bits >> 74:
                    self._milliseconds, self._bits = self._milliseconds + 1, self._random.getrandbits(73)
            return build_uuid7(self._milliseconds, self._bits)


_SEQUENCE = _Sequence()


def reset_after_fork() -> None:
    """Reset the generator of IDs in a forked process, which would otherwise generate the IDs of the parent process."""
    _SEQUENCE.reset()


def new_id(prefix: str) -> str:
    """Return a new, unique ID with the prefix; the IDs of one process sort by creation."""
    return f"{prefix}_{encode_base62(_SEQUENCE.next())}"


def create_id_from_digest(prefix: str, digest: bytes) -> str:
    """Return an ID that encodes the first 16 bytes of a digest, for objects whose ID must be the same everywhere."""
    return f"{prefix}_{encode_base62(int.from_bytes(digest[:16], 'big') % _MAX)}"


def build_id_pattern(prefix: str) -> str:
    """Return the regular expression of IDs with this prefix, for schemas."""
    return f"^{prefix}_[0-9A-Za-z]{{{LENGTH}}}$"


def find_pattern_prefix(pattern: str) -> str | None:
    """Return the ID prefix in a regular expression that `build_id_pattern` returned, or None for other expressions."""
    prefix = pattern[1:].partition("_")[0]
    return prefix if prefix in NOUNS and pattern == build_id_pattern(prefix) else None


def is_id(prefix: str, text: str) -> bool:
    """Return whether the text is a well-formed ID with this prefix."""
    return (
        len(text) == len(prefix) + 1 + LENGTH
        and text.startswith(prefix + "_")
        and bool(_BODY.fullmatch(text, len(prefix) + 1))
    )


def find_noun(text: str) -> str | None:
    """Return the noun for the object that an ID identifies, such as `a product`, or None if the text is not an ID."""
    prefix = text.partition("_")[0]
    return NOUNS[prefix] if prefix in NOUNS and is_id(prefix, text) else None
