"""DKIM (RFC 6376, RFC 8301): verification of a message's signatures."""

import base64
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import dkim
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from adapters.senders.dns_lookups import TimeLimitedLookups
from domain.mail.model import SenderCheckResult
from domain.sources.senders import normalise_domain
from domain.sso.ports import DnsUnavailable

MAX_SIGNATURES = 5
"""Maximum signatures of a message that are verified; the first ones count."""
_MIN_KEY_BITS = 1024
_MAX_KEY_BITS = 8192
_MAX_RECORD_BYTES = 2048
_ED25519_BYTES = 32
"""Bytes of an Ed25519 key (RFC 8463 §4)."""
_KEY_TAG = re.compile(rb"(?:^|;)\s{0,64}p\s{0,64}=([^;]*)")
_MAX_SECONDS = 10.0
"""Seconds after which no further signature of a message is verified."""
_MAX_HEADER_BYTES = 16 * 1024
_MAX_REGEX_STEPS = 50_000_000
_LONG_WHITESPACE = re.compile(rb"[ \t]{16,}")
_EXCESSIVE_WHITESPACE = re.compile(rb"\s{64}")
_PARTIAL_BODY_TAG = re.compile(rb"(?:^|;)\s{0,64}l\s{0,64}=")
_WEAK_ALGORITHM = re.compile(rb"(?:^|;)\s{0,64}a\s{0,64}=\s{0,64}rsa-sha1\b")


@dataclass(frozen=True, slots=True)
class DkimResult:
    """Result of the verification of one signature.

    Attributes:
        result: The result.
        domain: The domain that signed; empty if unknown.
    """

    result: SenderCheckResult
    domain: str


def verify_signatures(raw_message: bytes, lookups: TimeLimitedLookups) -> list[DkimResult]:
    """Verify the signatures of a message and return the results in the order of the headers.

    A signature with a weak algorithm, of only a part of the body, or too expensive to verify has the result `policy`.
    """
    head, _, body = raw_message.partition(b"\r\n\r\n")
    try:
        message = dkim.DKIM(head + b"\r\n\r\n", minkey=_MIN_KEY_BITS)
        message.body = body  # the same value as from the library, without a list of all lines
    except Exception:  # the library could not parse the message
        return [DkimResult(SenderCheckResult.PERMERROR, "")]
    headers = [value for name, value in message.headers if name.strip().lower() == b"dkim-signature"]
    costly, until = _estimate_regex_steps(raw_message) > _MAX_REGEX_STEPS, time.monotonic() + _MAX_SECONDS
    found: list[DkimResult] = []
    for at, value in enumerate(headers[:MAX_SIGNATURES]):
        left_out = costly or _violates_policy(value) or time.monotonic() > until
        found.append(DkimResult(SenderCheckResult.POLICY, "") if left_out else _verify_signature(message, at, lookups))
    return found


def summarise_results(signatures: list[DkimResult]) -> SenderCheckResult:
    """Return the best result of all signatures; `none` without signatures."""
    results = [signature.result for signature in signatures]
    order = (
        SenderCheckResult.PASS,
        SenderCheckResult.TEMPERROR,
        SenderCheckResult.FAIL,
        SenderCheckResult.POLICY,
        SenderCheckResult.PERMERROR,
    )
    return next((result for result in order if result in results), SenderCheckResult.NONE)


def _violates_policy(header_value: bytes) -> bool:
    """Return whether the value of a DKIM-Signature header is rejected without verification.

    Such a value is too long, covers only a part of the body, or uses a weak algorithm.
    """
    unwieldy = len(header_value) > _MAX_HEADER_BYTES or _EXCESSIVE_WHITESPACE.search(header_value) is not None
    return (
        unwieldy
        or _PARTIAL_BODY_TAG.search(header_value) is not None
        or _WEAK_ALGORITHM.search(header_value) is not None
    )


def _estimate_regex_steps(raw: bytes) -> int:
    """Estimate the steps of the library's regular expressions: the sum of the squared lengths of white space in the message."""
    return sum((found.end() - found.start()) ** 2 for found in _LONG_WHITESPACE.finditer(raw))


def _verify_signature(message: dkim.DKIM, index: int, lookups: TimeLimitedLookups) -> DkimResult:
    """Verify the signature in the DKIM header with the index."""

    def look_up_key(name: bytes | str, timeout: float = 5) -> bytes | None:
        del timeout
        host = name.decode("ascii", "replace") if isinstance(name, bytes) else name
        found = next((record.value for record in lookups.look_up(host, "TXT")), None)
        return found if found is not None and _is_acceptable_key(found) else None

    message.domain = None
    try:
        passed = message.verify(index, dnsfunc=look_up_key)
    except DnsUnavailable:
        return DkimResult(SenderCheckResult.TEMPERROR, _find_signing_domain(message))
    except dkim.ValidationError:
        return DkimResult(SenderCheckResult.FAIL, _find_signing_domain(message))
    except Exception:  # signatures are untrusted: any error of the library means that nothing is verified
        return DkimResult(SenderCheckResult.PERMERROR, _find_signing_domain(message))
    return DkimResult(SenderCheckResult.PASS if passed else SenderCheckResult.FAIL, _find_signing_domain(message))


def _is_acceptable_key(record: bytes) -> bool:
    """Return whether the key in a key record (RFC 6376 §3.6.1) may be passed to the library.

    The key must be small enough for a fast verification. A revoked key is empty and is rejected by the library.
    """
    # The library computes powers of the key's exponent in Python, which takes too long for a large exponent. RFC 8301 §3.2 requires
    # support of keys of up to 4,096 bits.
    stated = _KEY_TAG.search(record) if len(record) <= _MAX_RECORD_BYTES else None
    if stated is None:
        return False
    try:
        key = base64.b64decode(b"".join(stated[1].split()))
        loaded = load_der_public_key(key) if len(key) > _ED25519_BYTES else None
    except (ValueError, UnsupportedAlgorithm):
        return False
    if loaded is None:
        return len(key) in (0, _ED25519_BYTES)
    if not isinstance(loaded, RSAPublicKey):
        return False
    exponent = loaded.public_numbers().e
    return loaded.key_size <= _MAX_KEY_BITS and exponent % 2 == 1 and exponent < 1 << 32


def _find_signing_domain(message: dkim.DKIM) -> str:
    """Return the domain of the signature that was verified last; empty if it is invalid."""
    named = message.domain
    return normalise_domain(named.decode("ascii", "replace")) or "" if isinstance(named, bytes) else ""


def list_passing_domains(signatures: list[DkimResult]) -> Iterator[str]:
    """Yield the domains of the valid signatures."""
    return (
        signature.domain for signature in signatures if signature.result == SenderCheckResult.PASS and signature.domain
    )
