"""The rules of a robots.txt, by protego, which matches in linear time."""

import re
from typing import Final

from protego import Protego

from domain.probes.facts import is_usable

AGENT: Final = "Joinery"
"""The product token that robots.txt files name us by; it begins our User-Agent, too."""
LONGEST: Final = 500 * 1024
"""Bytes that are read (RFC 9309 §2.5)."""
_LINE: Final = 4_000
"""Characters of one line."""
_SITEMAPS: Final = 20
_STARS: Final = re.compile(r"\*{2,}")


class RobotsRules:
    """One file's rules. Thousands of them take their time with each URL, so they are asked beside the event loop."""

    def __init__(self, body: bytes) -> None:
        text = body[:LONGEST].decode("utf-8-sig", "replace").replace("\0", "")
        lines = [_STARS.sub("*", line[:_LINE]) for line in text.splitlines() if _is_kept(line)]
        self._rules = Protego.parse("\n".join(lines))

    @property
    def crawl_delay(self) -> float | None:
        delay = self._rules.crawl_delay(AGENT)
        return None if delay is None else float(delay)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        named = dict.fromkeys(url for url in self._rules.sitemaps if is_usable(url))
        return tuple(named)[:_SITEMAPS]

    def allows(self, url: str) -> bool:
        return bool(self._rules.can_fetch(url, AGENT))


def _is_kept(line: str) -> bool:
    """A line that is too long is cut, which forbids more than it says; none may allow more."""
    return len(line) <= _LINE or line.lstrip()[:8].lower() == "disallow"
