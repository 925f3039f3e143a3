"""Allowed senders of mail to a source: addresses and domains (config.inbound.senders)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from domain.kernel.errors import FieldError

LONGEST = 320
_LONGEST_DOMAIN = 253
_LOCAL = re.compile(r"[^\s@<>\",;:\\\x00-\x1f\x7f]{1,64}")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


def domain_of(text: str) -> str | None:
    """Return the normalised domain name (lower case, A-labels), or None for an invalid one."""
    name = text[: 2 * LONGEST].strip().rstrip(".").lower()
    if len(name) > _LONGEST_DOMAIN:
        return None
    try:
        name = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return None
    labels = name.split(".")
    whole = len(name) <= _LONGEST_DOMAIN and len(labels) > 1 and all(_LABEL.fullmatch(label) for label in labels)
    return name if whole else None


def address_of(text: str) -> str | None:
    """Return the normalised email address, compared without case, or None for an invalid one."""
    local, at, rest = text.strip().rpartition("@")
    domain = domain_of(rest)
    if not at or domain is None or not _LOCAL.fullmatch(local):
        return None
    return f"{local.casefold()}@{domain}"


def is_listed(senders: Sequence[str], address: str) -> bool:
    """Return whether the senders contain the address or its exact domain; subdomains do not match."""
    sender = address_of(address)
    if sender is None:
        return False
    domain = sender.rpartition("@")[2]
    return any(_entry(one) in (sender, domain) for one in senders)


def faults(config: Mapping[str, Any]) -> tuple[FieldError, ...]:
    """Return an error for each sender that is neither an address nor a domain."""
    inbound = config.get("inbound")
    senders = inbound.get("senders", ()) if isinstance(inbound, Mapping) else ()
    detail = "Must be an address, such as orders@vendor.example, or a domain, such as vendor.example."
    return tuple(
        FieldError(f"config.inbound.senders.{at}", "invalid_format", detail)
        for at, one in enumerate(senders)
        if isinstance(one, str) and _entry(one) is None
    )


def _entry(text: str) -> str | None:
    return address_of(text) if "@" in text.strip().removeprefix("@") else domain_of(text.strip().removeprefix("@"))
