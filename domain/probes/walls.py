"""Detection of obstacles by status, headers, redirects, and the content of pages with status 200."""

from urllib.parse import urlsplit

from domain.probes.facts import PageFacts, Response
from domain.probes.model import Wall, WallKind

THIN = 600
"""Characters of visible text below which a page may be an obstacle; shops' pages have more."""
FEW_LINKS = 8

_CHALLENGE_HEADERS = (
    ("cf-mitigated", "challenge"),
    ("x-amzn-waf-action", "challenge"),
    ("x-amzn-waf-action", "captcha"),
)
_CHALLENGE_TITLES = (
    "just a moment", "attention required", "pardon our interruption", "are you a robot", "are you a human",
    "verify you are human", "verifying you are human", "checking your browser", "robot check", "security check",
    "human verification", "ddos protection", "please wait...", "bot verification",
)  # fmt: skip
_CHALLENGE_ASSETS = (
    "challenges.cloudflare.com", "/cdn-cgi/challenge-platform/", "captcha-delivery.com", "px-captcha", "perimeterx",
    "_incapsula_resource", "hcaptcha.com", "/recaptcha/", ".awswaf.com", "sgcaptcha", "arkoselabs.com", "/kpsdk/",
)  # fmt: skip
_CHALLENGE_TEXTS = (
    "verify you are human", "verify that you are human", "you are not a robot", "checking your browser",
    "enable javascript and cookies to continue", "unusual traffic", "complete the security check",
    "press & hold to confirm", "request unsuccessful. incapsula",
)  # fmt: skip
_GEO_TEXTS = (
    "not available in your country", "not available in your region", "unavailable in your country",
    "unavailable in your region", "from your location is not", "blocked your country", "your country is not supported",
    "not available in your location",
)  # fmt: skip
_RATE_TEXTS = ("too many requests", "rate limit exceeded", "rate limited")
_LOGIN_STEPS = frozenset(
    {"login", "log-in", "signin", "sign-in", "sign_in", "logon", "password", "authenticate", "sso", "wp-login.php"}
)
_LONGEST = 20_000
"""Maximum characters of a text that are inspected."""


def judged(asked: str, response: Response, page: PageFacts) -> Wall | None:
    """Return the wall that a response represents, or None; `asked` is the URL before redirects."""
    return _by_status(response, page) or _by_headers(response) or _by_content(page) or _login(asked, response, page)


def _by_status(response: Response, page: PageFacts) -> Wall | None:
    status = response.status
    told = f"The site answers {status}."
    if status == 429:
        wait = response.headers.get("retry-after", "")[:40]
        return Wall(WallKind.RATE_LIMIT, told + (f" It asks to wait: {wait}." if wait else ""))
    if status in (401, 407):
        return Wall(WallKind.LOGIN, told)
    if status == 451:
        return Wall(WallKind.GEO_BLOCK, told)
    if status not in (403, 503):
        return None
    told_more = _by_headers(response) or _by_content(page, whatever_else=True)
    if told_more is not None:
        return Wall(told_more.kind, f"{told} {told_more.detail}")
    if status == 503:
        return None
    return Wall(WallKind.BOT_CHALLENGE, f"{told} It refuses a reader that says what it is.")


def _by_headers(response: Response) -> Wall | None:
    for name, value in _CHALLENGE_HEADERS:
        if value in response.headers.get(name, "").lower():
            return Wall(WallKind.BOT_CHALLENGE, f"The header {name} says {value}.")
    return None


def _by_content(page: PageFacts, *, whatever_else: bool = False) -> Wall | None:
    """Detect a wall by the content of a page, which must have little other content unless `whatever_else` is set."""
    thin = whatever_else or _is_thin(page)
    title, text = page.title.lower()[:500], page.text.lower()[:_LONGEST]
    if thin and (said := _first(_CHALLENGE_TITLES, title)):
        return Wall(WallKind.BOT_CHALLENGE, f"The page's title says “{said}”.")
    if not thin:
        return None
    for kind, words in (
        (WallKind.GEO_BLOCK, _GEO_TEXTS),
        (WallKind.RATE_LIMIT, _RATE_TEXTS),
        (WallKind.BOT_CHALLENGE, _CHALLENGE_TEXTS),
    ):
        if said := _first(words, f"{title} {text}"):
            return Wall(kind, f"The page says “{said}”.")
    shown = next((word for word in _CHALLENGE_ASSETS if any(word in asset.lower() for asset in page.assets)), None)
    return Wall(WallKind.BOT_CHALLENGE, f"The page is little more than {shown}.") if shown else None


def _is_thin(page: PageFacts) -> bool:
    return page.text_length < THIN and len(page.links) < FEW_LINKS and not page.blocks.products


def _first(words: tuple[str, ...], text: str) -> str | None:
    return next((word for word in words if word in text), None)


def _login(asked: str, response: Response, page: PageFacts) -> Wall | None:
    """Detect a login page: a redirect to one, or a page with nothing but a password form."""
    if not response.is_good:
        return None
    turned_away = _is_login(response.url) and not _is_login(asked)
    if turned_away:
        return Wall(WallKind.LOGIN, f"The site leads to {urlsplit(response.url).path[:200]} instead.")
    if page.asks_password and _is_thin(page):
        return Wall(WallKind.LOGIN, "The page asks for a password and shows nothing else.")
    return None


def _is_login(url: str) -> bool:
    return not _LOGIN_STEPS.isdisjoint(urlsplit(url).path.lower().split("/"))
