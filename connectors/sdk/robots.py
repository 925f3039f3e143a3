"""Rules of a site's robots.txt (RFC 9309), by protego, which matches in linear time."""

import re
from math import isfinite

from protego import Protego

AGENT = "Joinery"
"""The product token that robots.txt files name us by; it begins our User-Agent, too."""
LONGEST = 500 * 1024
"""Bytes that are read (RFC 9309 §2.5)."""
_LINE = 4_000
_MOST_SITEMAPS = 1_000
_LONGEST_DELAY = 86_400.0
_STARS = re.compile(r"\*{2,}")


class Robots:
    """Rules of one file for Joinery's agent, else those for all agents; invalid lines are ignored.

    Attributes:
        delay: Seconds between requests; None if the file sets none.
        sitemaps: Addresses of sitemaps, as in the file.

    """

    def __init__(self, body: bytes = b"") -> None:
        text = body[:LONGEST].decode("utf-8-sig", "replace").replace("\0", "")
        lines = [_plain(line[:_LINE]) for line in text.splitlines() if _is_kept(line)]
        self._rules = Protego.parse("\n".join(lines))
        delay = self._rules.crawl_delay(AGENT)
        self.delay = min(float(delay), _LONGEST_DELAY) if delay is not None and isfinite(delay) else None
        self.sitemaps = tuple(self._rules.sitemaps)[:_MOST_SITEMAPS]

    def allows(self, url: str) -> bool:
        """Return whether the URL may be requested; thousands of rules take milliseconds."""
        return bool(self._rules.can_fetch(url, AGENT))


def _is_kept(line: str) -> bool:
    """Return whether to keep a line: a long Disallow may be truncated, as this only forbids more; a long Allow may not."""
    return len(line) <= _LINE or line.lstrip()[:8].lower() == "disallow"


def _plain(line: str) -> str:
    """Normalise a line for protego: no runs of `*`, agents without their version."""
    name, _, value = line.partition(":")
    return f"{name}:{value.partition('/')[0]}" if name.strip().lower() == "user-agent" else _STARS.sub("*", line)
