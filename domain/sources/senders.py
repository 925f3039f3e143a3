"""Senders whose mail a source accepts: email addresses and domains (config.inbound.senders)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from domain.kernel.errors import FieldError

MAX_SENDER_CHARS = 320
"""Maximum characters of a sender."""
_MAX_DOMAIN_CHARS = 253
_LOCAL = re.compile(r"[^\s@<>\",;:\\\x00-\x1f\x7f]{1,64}")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


def normalise_domain(text: str) -> str | None:
    """Return the domain name in lower case and ASCII (A-labels); None if the text is no valid domain name."""
    name = text[: 2 * MAX_SENDER_CHARS].strip().rstrip(".").lower()
    if len(name) > _MAX_DOMAIN_CHARS:
        return None
    try:
        name = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return None
    labels = name.split(".")
    is_valid = len(name) <= _MAX_DOMAIN_CHARS and len(labels) > 1 and all(_LABEL.fullmatch(label) for label in labels)
    return name if is_valid else None


def normalise_address(text: str) -> str | None:
    """Return the email address in lower case with an ASCII domain (A-labels); None if the text is no valid address."""
    local, at, rest = text.strip().rpartition("@")
    domain = normalise_domain(rest)
    if not at or domain is None or not _LOCAL.fullmatch(local):
        return None
    return f"{local.casefold()}@{domain}"


def contains_sender(senders: Sequence[str], address: str) -> bool:
    """Return whether the senders contain the address or the address's domain; subdomains of a sender do not match."""
    sender = normalise_address(address)
    if sender is None:
        return False
    domain = sender.rpartition("@")[2]
    return any(_normalise_sender(one) in (sender, domain) for one in senders)


def validate_senders(config: Mapping[str, Any]) -> tuple[FieldError, ...]:
    """Return an error for each sender in the settings that is neither an email address nor a domain."""
    inbound = config.get("inbound")
    senders = inbound.get("senders", ()) if isinstance(inbound, Mapping) else ()
    detail = "The sender must be an address, such as orders@vendor.example, or a domain, such as vendor.example."
    return tuple(
        FieldError(f"config.inbound.senders.{index}", "invalid_format", detail)
        for index, sender in enumerate(senders)
        if isinstance(sender, str) and _normalise_sender(sender) is None
    )


def _normalise_sender(text: str) -> str | None:
    return (
        normalise_address(text)
        if "@" in text.strip().removeprefix("@")
        else normalise_domain(text.strip().removeprefix("@"))
    )
