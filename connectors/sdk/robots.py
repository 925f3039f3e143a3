"""Rules of a site's robots.txt (RFC 9309), evaluated by protego, which matches in linear time."""

import re
from math import isfinite

from protego import Protego

AGENT = "Joinery"
"""Name of Joinery in robots.txt files (product token); the User-Agent header begins with this name."""
MAX_ROBOTS_BYTES = 500 * 1024
"""Maximum number of bytes of a robots.txt that are evaluated; the rest is ignored (RFC 9309 §2.5)."""
_MAX_LINE_CHARS = 4_000
_MAX_SITEMAPS = 1_000
_MAX_DELAY_SECONDS = 86_400.0
_REPEATED_STARS = re.compile(r"\*{2,}")


class Robots:
    """Rules of a robots.txt for Joinery: the group for its name or, without one, the group for all agents.

    Invalid lines are ignored.

    Attributes:
        delay: Minimum number of seconds between requests, at most a day; None if the file states none.
        sitemaps: URLs of the first 1,000 sitemaps that the file lists.
    """

    def __init__(self, body: bytes = b"") -> None:
        text = body[:MAX_ROBOTS_BYTES].decode("utf-8-sig", "replace").replace("\0", "")
        lines = [_normalise_line(line[:_MAX_LINE_CHARS]) for line in text.splitlines() if _is_usable(line)]
        self._rules = Protego.parse("\n".join(lines))
        delay = self._rules.crawl_delay(AGENT)
        self.delay = min(float(delay), _MAX_DELAY_SECONDS) if delay is not None and isfinite(delay) else None
        self.sitemaps = tuple(self._rules.sitemaps)[:_MAX_SITEMAPS]

    def allows(self, url: str) -> bool:
        """Return whether Joinery may request the URL. With thousands of rules, the test takes milliseconds."""
        return bool(self._rules.can_fetch(url, AGENT))


def _is_usable(line: str) -> bool:
    """Return whether a line has at most _MAX_LINE_CHARS characters or is a Disallow line, which is truncated."""
    # A truncated Disallow forbids more than the whole line, which is harmless; a truncated Allow would permit more.
    return len(line) <= _MAX_LINE_CHARS or line.lstrip()[:8].lower() == "disallow"


def _normalise_line(line: str) -> str:
    """Return a line that protego can parse: without repeated `*`, and without versions of agents."""
    name, _, value = line.partition(":")
    return (
        f"{name}:{value.partition('/')[0]}" if name.strip().lower() == "user-agent" else _REPEATED_STARS.sub("*", line)
    )
