"""Public identifiers: a prefix, an underscore and 22 base62 characters (docs/conventions.md#identifiers).

The 22 characters are a UUIDv7 (RFC 9562) in base62, so that ids sort bytewise by time of creation and keys stay index-
friendly.
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
    "prb": "a source probe",
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
    "pro": "a proposal",
    "agt": "an agent",
    "mrg": "a merge",
    "aud": "an audit entry",
    "acc": "an agreement acceptance",
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
    "use": "a use of a model",
    "ses": "a session",
    "sec": "a security event",
    "mail": "an outgoing message",
    "mbi": "an invitation",
    "pky": "a passkey",
    "grt": "a grant to an app",
}
"""The noun of each id prefix, with its article."""
PREFIXES = frozenset(NOUNS)

_PAIRS = tuple(a + b for a in ALPHABET for b in ALPHABET)
_BODY = re.compile(r"[0-9A-Za-z]{22}")
_MAX = 1 << 128
_FIVE = 3844**5


def encode(number: int) -> str:
    """Return the 22 base62 characters of a 128-bit number, most significant first."""
    rest, low = divmod(number, _FIVE)
    top, high = divmod(rest, _FIVE)
    return _PAIRS[top] + _five(high) + _five(low)


def _five(number: int) -> str:
    """Return ten base62 characters of a number below 62^10."""
    number, e = divmod(number, 3844)
    number, d = divmod(number, 3844)
    number, c = divmod(number, 3844)
    a, b = divmod(number, 3844)
    return _PAIRS[a] + _PAIRS[b] + _PAIRS[c] + _PAIRS[d] + _PAIRS[e]


def uuid7(milliseconds: int, random_bits: int) -> int:
    """Return a UUIDv7 as a number: 48 bits of time, version 7, 74 random bits."""
    high = random_bits >> 62 & 0xFFF
    low = random_bits & 0x3FFF_FFFF_FFFF_FFFF
    return (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low


_CORRECTED = 60_000
"""Milliseconds by which the clock goes back only when a wrong one is corrected; identifiers then follow it."""


class _Sequence:
    """Generator of increasing numbers in this process (RFC 9562 §6.2, method 2), unless a wrong clock is corrected."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Reset the generator with a new random seed."""
        self._lock = Lock()
        self._random = Random(secrets.randbits(256))  # noqa: S311  ids are unique, not secret
        self._milliseconds = 0
        self._bits = 0

    def next(self) -> int:
        """Return the next UUIDv7."""
        now = CLOCK.unix_ms()
        with self._lock:
            if now > self._milliseconds or now < self._milliseconds - _CORRECTED:
                self._milliseconds, self._bits = now, self._random.getrandbits(73)
            else:
                self._bits += self._random.getrandbits(40) + 1
                if self._bits >> 74:
                    self._milliseconds, self._bits = self._milliseconds + 1, self._random.getrandbits(73)
            return uuid7(self._milliseconds, self._bits)


_SEQUENCE = _Sequence()


def begin_anew() -> None:
    """Reset the generator of identifiers. A forked process must do so, or it would generate those of its parent."""
    _SEQUENCE.begin()


def new_id(prefix: str) -> str:
    """Return a new, unique identifier with the prefix; those of one process sort by creation."""
    return f"{prefix}_{encode(_SEQUENCE.next())}"


def from_digest(prefix: str, digest: bytes) -> str:
    """Return a permanent identifier from the first 16 bytes of a digest, for things that a release defines."""
    return f"{prefix}_{encode(int.from_bytes(digest[:16], 'big') % _MAX)}"


def pattern_of(prefix: str) -> str:
    """Return the regular expression of identifiers with this prefix, for schemas."""
    return f"^{prefix}_[0-9A-Za-z]{{{LENGTH}}}$"


def prefix_in(pattern: str) -> str | None:
    """Return the prefix of an identifier pattern, or None for another pattern."""
    prefix = pattern[1:].partition("_")[0]
    return prefix if prefix in NOUNS and pattern == pattern_of(prefix) else None


def is_id(prefix: str, text: str) -> bool:
    """Return whether `text` is a well-formed identifier with this prefix."""
    return (
        len(text) == len(prefix) + 1 + LENGTH
        and text.startswith(prefix + "_")
        and bool(_BODY.fullmatch(text, len(prefix) + 1))
    )


def kind_of(text: str) -> str | None:
    """Return the noun of an identifier, such as `a product`, or None if the text is not one."""
    prefix = text.partition("_")[0]
    return NOUNS[prefix] if prefix in NOUNS and is_id(prefix, text) else None
