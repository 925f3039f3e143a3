"""What a site's robots.txt allows (RFC 9309): groups by agent, the longest rule wins, `*` and `$` in paths."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isfinite
from urllib.parse import quote, urlsplit

AGENT = "joinery"
_LARGEST = 500 * 1024
_MOST_RULES = 10_000
_SAFE = "/%?&=+$*:@!~'(),;-._"


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules that hold for us: pairs of path and whether it is allowed; seconds between requests; sitemaps."""

    rules: tuple[tuple[str, bool], ...] = ()
    delay: float = 0.0
    sitemaps: tuple[str, ...] = ()

    def allows(self, url: str) -> bool:
        """Whether the address may be asked for: by the longest rule that fits, and of two as long the one that allows."""
        parts = urlsplit(url)
        path = _plain((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        best = max(((len(rule), allowed) for rule, allowed in self.rules if _fits(rule, path)), default=(0, True))
        return best[1]


def parsed(body: bytes) -> Robots:
    """The rules in a robots.txt for our agent, else those for all. Lines that are none are passed over."""
    groups: dict[str, list[tuple[str, str]]] = {}
    sitemaps: list[str] = []
    agents: list[str] = []
    open_to_agents = False
    for name, value in _lines(body):
        if name == "user-agent":
            agents = [*(agents if open_to_agents else []), value.split("/", 1)[0].strip().lower()]
            open_to_agents = True
            for agent in agents:
                groups.setdefault(agent, [])
        elif name == "sitemap":
            sitemaps.append(value)
        elif name in {"allow", "disallow", "crawl-delay"}:
            open_to_agents = False
            for agent in agents:
                groups[agent].append((name, value))
    own = groups.get(AGENT, groups.get("*", []))[:_MOST_RULES]
    rules = tuple((_plain(value), name == "allow") for name, value in own if name != "crawl-delay" and value)
    delays = [_seconds(value) for name, value in own if name == "crawl-delay"]
    return Robots(rules, max(delays, default=0.0), tuple(sitemaps[:1_000]))


def _lines(body: bytes) -> Iterator[tuple[str, str]]:
    for line in body[:_LARGEST].decode("utf-8-sig", errors="replace").splitlines():
        name, colon, value = line.split("#", 1)[0].partition(":")
        if colon:
            yield name.strip().lower(), value.strip()


def _seconds(value: str) -> float:
    try:
        seconds = float(Decimal(value))
    except (InvalidOperation, OverflowError, ValueError):
        return 0.0
    return min(max(seconds, 0.0), 86_400.0) if isfinite(seconds) else 0.0


def _plain(path: str) -> str:
    """A path with everything percent-encoded that has to be, so that both spellings of one are alike."""
    return quote(path, safe=_SAFE)


def _fits(rule: str, path: str) -> bool:
    """Whether a rule fits the path from its beginning: `*` stands for anything, `$` for the end."""
    pieces = rule.removesuffix("$").split("*")
    if not path.startswith(pieces[0]):
        return False
    at = len(pieces[0])
    for piece in pieces[1:-1]:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    last = pieces[-1] if len(pieces) > 1 else ""
    if rule.endswith("$"):
        return path.endswith(last) and len(path) - len(last) >= at if len(pieces) > 1 else at == len(path)
    return path.find(last, at) >= 0
