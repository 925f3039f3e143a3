"""The source that a probe proposes: a body that POST /v1/sources takes as it is (docs/probes.md#proposal)."""

from collections.abc import Collection
from typing import Any, Final

from domain.kernel.money import EXPONENTS
from domain.probes.facts import host_of, origin_of
from domain.probes.model import PlatformFeed

DAILY: Final = 1_440
"""Minutes between pulls."""
_FILES: Final = "csv"
_PAGES: Final = "json_ld"
_SIGNING_IN: Final = frozenset(("woocommerce",))
"""Platforms whose connector needs credentials, which are stored once the source is there."""


def for_feed(feed: PlatformFeed, currency: str | None) -> dict[str, Any]:
    """The source that reads a platform's own list. The connector is the one that has the platform's name.

    No other may take its place: a list's numbers mean what the platform says (WooCommerce's prices are minor units).
    """
    config = {"url": f"{origin_of(feed.url)}/", "platform": str(feed.platform)}
    return _source(feed.url, str(feed.platform), config, currency)


def for_file(url: str, format: str, currency: str | None = None) -> dict[str, Any]:
    """The source that reads a file."""
    return _source(url, _FILES, {"url": url, "format": format}, currency)


def for_pages(url: str, currency: str | None) -> dict[str, Any]:
    """The source that reads what the pages of a site state for machines, all that its sitemaps list."""
    return _source(url, _PAGES, {"url": f"{origin_of(url)}/", "pages": "site"}, currency)


def _source(url: str, connector: str, config: dict[str, Any], currency: str | None) -> dict[str, Any]:
    if currency in EXPONENTS:
        config["currency"] = currency
    return {
        "name": host_of(url)[:200],
        "kind": "api" if connector in _SIGNING_IN else "url",
        "connector": connector,
        "config": config,
        "schedule": {"interval_minutes": DAILY},
    }


def agreed(currencies: Collection[str]) -> str | None:
    """The currency of the site, where all that was seen of it agrees on one that is known."""
    known = {currency for currency in currencies if currency in EXPONENTS}
    return known.pop() if len(known) == 1 and len(set(currencies)) == 1 else None
