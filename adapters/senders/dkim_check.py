"""DKIM (RFC 6376, RFC 8301): the domains that have signed a whole message."""

import base64
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import dkim
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from adapters.senders.asking import Asking
from domain.mail.model import CheckResult
from domain.sources.senders import domain_of
from domain.sso.ports import NamesUnavailable

MOST_SIGNATURES = 5
"""Maximum signatures that are verified, from the top."""
_SMALLEST_KEY = 1024
_LARGEST_KEY = 8192
_LONGEST_RECORD = 2048
_ED25519 = 32
"""Bytes of an Ed25519 key (RFC 8463 §4); a revoked key has none."""
_KEY = re.compile(rb"(?:^|;)\s{0,64}p\s{0,64}=([^;]*)")
_SECONDS = 10.0
"""Seconds after which no further signature of a message is verified."""
_LONGEST_HEADER = 16 * 1024
_MOST_EFFORT = 50_000_000
_BLANKS = re.compile(rb"[ \t]{16,}")
_SPACE = re.compile(rb"\s{64}")
_PARTIAL = re.compile(rb"(?:^|;)\s{0,64}l\s{0,64}=")
_WEAK = re.compile(rb"(?:^|;)\s{0,64}a\s{0,64}=\s{0,64}rsa-sha1\b")


@dataclass(frozen=True, slots=True)
class Signature:
    """Result of one signature, and its domain."""

    result: CheckResult
    domain: str


def signatures(raw: bytes, asking: Asking) -> list[Signature]:
    """Verify the message's signatures. One of a partial body, or with a weak algorithm, gives `policy`."""
    head, _, body = raw.partition(b"\r\n\r\n")
    try:
        message = dkim.DKIM(head + b"\r\n\r\n", minkey=_SMALLEST_KEY)
        message.body = body  # the same value as from the library, without a list of all lines
    except Exception:  # the library could not take the message apart
        return [Signature(CheckResult.PERMERROR, "")]
    headers = [value for name, value in message.headers if name.strip().lower() == b"dkim-signature"]
    costly, until = _effort(raw) > _MOST_EFFORT, time.monotonic() + _SECONDS
    found: list[Signature] = []
    for at, value in enumerate(headers[:MOST_SIGNATURES]):
        left_out = costly or _refused(value) or time.monotonic() > until
        found.append(Signature(CheckResult.POLICY, "") if left_out else _verified(message, at, asking))
    return found


def summary(found: list[Signature]) -> CheckResult:
    """Return the best result of all signatures."""
    results = [signature.result for signature in found]
    order = (CheckResult.PASS, CheckResult.TEMPERROR, CheckResult.FAIL, CheckResult.POLICY, CheckResult.PERMERROR)
    return next((result for result in order if result in results), CheckResult.NONE)


def _refused(value: bytes) -> bool:
    unwieldy = len(value) > _LONGEST_HEADER or _SPACE.search(value) is not None
    return unwieldy or _PARTIAL.search(value) is not None or _WEAK.search(value) is not None


def _effort(raw: bytes) -> int:
    """Return the steps that the library's patterns may take over runs of blanks, which are quadratic."""
    return sum((found.end() - found.start()) ** 2 for found in _BLANKS.finditer(raw))


def _verified(message: dkim.DKIM, at: int, asking: Asking) -> Signature:
    def texts(name: bytes | str, timeout: float = 5) -> bytes | None:
        del timeout
        host = name.decode("ascii", "replace") if isinstance(name, bytes) else name
        found = next((record.value for record in asking.look_up(host, "TXT")), None)
        return found if found is not None and _is_bounded(found) else None

    message.domain = None
    try:
        passed = message.verify(at, dnsfunc=texts)
    except NamesUnavailable:
        return Signature(CheckResult.TEMPERROR, _domain(message))
    except dkim.ValidationError:
        return Signature(CheckResult.FAIL, _domain(message))
    except Exception:  # signatures are untrusted: any error of the library means that nothing is proven
        return Signature(CheckResult.PERMERROR, _domain(message))
    return Signature(CheckResult.PASS if passed else CheckResult.FAIL, _domain(message))


def _is_bounded(record: bytes) -> bool:
    """Return whether a key record (RFC 6376 §3.6.1) states a key that verifies in a bounded time.

    The library raises to the key's exponent in Python, without end for a large one; RFC 8301 §3.2 asks for keys up to
    4,096 bits.
    """
    stated = _KEY.search(record) if len(record) <= _LONGEST_RECORD else None
    if stated is None:
        return False
    try:
        key = base64.b64decode(b"".join(stated[1].split()))
        loaded = load_der_public_key(key) if len(key) > _ED25519 else None
    except (ValueError, UnsupportedAlgorithm):
        return False
    if loaded is None:
        return len(key) in (0, _ED25519)
    if not isinstance(loaded, RSAPublicKey):
        return False
    exponent = loaded.public_numbers().e
    return loaded.key_size <= _LARGEST_KEY and exponent % 2 == 1 and exponent < 1 << 32


def _domain(message: dkim.DKIM) -> str:
    named = message.domain
    return domain_of(named.decode("ascii", "replace")) or "" if isinstance(named, bytes) else ""


def passing(found: list[Signature]) -> Iterator[str]:
    """Return the domains with a valid signature."""
    return (signature.domain for signature in found if signature.result == CheckResult.PASS and signature.domain)
