"""Detection of access barriers on websites, by status, headers, redirects and the content of pages."""

from urllib.parse import urlsplit

from domain.probes.facts import PageFacts, ProbeResponse
from domain.probes.model import AccessBlock, AccessBlockKind

MIN_PAGE_CHARS = 600
"""Minimum number of characters of visible text of a shop's page; a page with fewer may be an access barrier."""
MIN_PAGE_LINKS = 8
"""Minimum number of links of a shop's page; a page with fewer may be an access barrier."""

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
_LOGIN_SEGMENTS = frozenset(
    {"login", "log-in", "signin", "sign-in", "sign_in", "logon", "password", "authenticate", "sso", "wp-login.php"}
)
_MAX_TEXT_CHARS = 20_000
"""Maximum number of characters of a page's text that are searched."""


def detect_access_block(requested_url: str, response: ProbeResponse, page: PageFacts) -> AccessBlock | None:
    """Return the access barrier that a response indicates, or None.

    Args:
        requested_url: The URL before redirects.
        response: The response.
        page: The contents of the page.
    """
    return (
        _detect_by_status(response, page)
        or _detect_by_headers(response)
        or _detect_by_content(page)
        or _detect_by_login(requested_url, response, page)
    )


def _detect_by_status(response: ProbeResponse, page: PageFacts) -> AccessBlock | None:
    """Return the access barrier that the HTTP status of a response indicates, or None."""
    status = response.status
    message = f"The site responds with status {status}."
    if status == 429:
        wait = response.headers.get("retry-after", "")[:40]
        return AccessBlock(
            AccessBlockKind.RATE_LIMIT, message + (f" The site requests a pause (Retry-After: {wait})." if wait else "")
        )
    if status in (401, 407):
        return AccessBlock(AccessBlockKind.LOGIN, message)
    if status == 451:
        return AccessBlock(AccessBlockKind.GEO_BLOCK, message)
    if status not in (403, 503):
        return None
    more_specific = _detect_by_headers(response) or _detect_by_content(page, accepts_any_content=True)
    if more_specific is not None:
        return AccessBlock(more_specific.kind, f"{message} {more_specific.detail}")
    if status == 503:
        return None
    return AccessBlock(AccessBlockKind.BOT_CHALLENGE, f"{message} The site rejects automated readers.")


def _detect_by_headers(response: ProbeResponse) -> AccessBlock | None:
    """Return the bot challenge that a header of a response indicates, or None."""
    for name, value in _CHALLENGE_HEADERS:
        if value in response.headers.get(name, "").lower():
            return AccessBlock(AccessBlockKind.BOT_CHALLENGE, f"The header {name} contains “{value}”.")
    return None


def _detect_by_content(page: PageFacts, *, accepts_any_content: bool = False) -> AccessBlock | None:
    """Return the access barrier that the content of a page indicates, or None.

    Args:
        page: The contents of the page.
        accepts_any_content: Whether to search pages with much content, too; otherwise only pages with little content can be
            barriers.
    """
    has_little_content = accepts_any_content or _has_little_content(page)
    title, text = page.title.lower()[:500], page.text.lower()[:_MAX_TEXT_CHARS]
    if has_little_content and (found := _find_first_word_in_text(_CHALLENGE_TITLES, title)):
        return AccessBlock(AccessBlockKind.BOT_CHALLENGE, f"The title of the page contains “{found}”.")
    if not has_little_content:
        return None
    for kind, words in (
        (AccessBlockKind.GEO_BLOCK, _GEO_TEXTS),
        (AccessBlockKind.RATE_LIMIT, _RATE_TEXTS),
        (AccessBlockKind.BOT_CHALLENGE, _CHALLENGE_TEXTS),
    ):
        if found := _find_first_word_in_text(words, f"{title} {text}"):
            return AccessBlock(kind, f"The page contains “{found}”.")
    asset_text = next((word for word in _CHALLENGE_ASSETS if any(word in asset.lower() for asset in page.assets)), None)
    return (
        AccessBlock(
            AccessBlockKind.BOT_CHALLENGE, f"The page loads a bot check (“{asset_text}”) and has little other content."
        )
        if asset_text
        else None
    )


def _has_little_content(page: PageFacts) -> bool:
    """Return whether a page has little text, few links and no products."""
    return page.text_length < MIN_PAGE_CHARS and len(page.links) < MIN_PAGE_LINKS and not page.json_ld.products


def _find_first_word_in_text(words: tuple[str, ...], text: str) -> str | None:
    """Return the first word, in the order of `words`, that occurs in the text; None if none does."""
    return next((word for word in words if word in text), None)


def _detect_by_login(requested_url: str, response: ProbeResponse, page: PageFacts) -> AccessBlock | None:
    """Return the access barrier for a redirect to a login page, or for a page with only a password field."""
    if not response.is_success:
        return None
    is_redirected = _is_login_url(response.url) and not _is_login_url(requested_url)
    if is_redirected:
        return AccessBlock(
            AccessBlockKind.LOGIN, f"The site redirects to the login page {urlsplit(response.url).path[:200]}."
        )
    if page.has_password_field and _has_little_content(page):
        return AccessBlock(AccessBlockKind.LOGIN, "The page requires a password and has no other content.")
    return None


def _is_login_url(url: str) -> bool:
    """Return whether a segment of the URL's path indicates a login page."""
    return not _LOGIN_SEGMENTS.isdisjoint(urlsplit(url).path.lower().split("/"))
