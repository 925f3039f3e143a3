"""Access barriers, and pages that only resemble one."""

from typing import Any

import pytest

from domain.probes import access_blocks
from domain.probes.facts import JsonLdFacts, PageFacts, ProbeResponse

URL = "https://vendor.example/"
LONG = "Chairs and tables. " * 100
LINKS = tuple(f"https://vendor.example/{number}" for number in range(30))


def detect_block(status: int = 200, url: str = URL, headers: Any = None, **page: Any) -> str | None:
    """Return the kind of access barrier of the response, or None."""
    text = page.get("text", "")
    facts = PageFacts(**{"text_length": len(text)} | page)
    found = access_blocks.detect_access_block(URL, ProbeResponse(url, status, headers or {}), facts)
    assert found is None or found.detail
    return found.kind if found else None


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("rate_limit", {"status": 429}),
        ("login", {"status": 401}),
        ("geo_block", {"status": 451}),
        ("bot_challenge", {"status": 403}),
        ("bot_challenge", {"status": 503, "title": "Just a moment..."}),
        ("geo_block", {"status": 403, "text": "We are not available in your country."}),
        ("bot_challenge", {"headers": {"cf-mitigated": "challenge"}, "text": LONG}),
        ("bot_challenge", {"headers": {"x-amzn-waf-action": "challenge"}, "status": 202}),
        ("bot_challenge", {"title": "Just a moment..."}),
        ("bot_challenge", {"title": "Vendor", "text": "Press & Hold to confirm you are a human"}),
        ("bot_challenge", {"assets": ("https://ct.captcha-delivery.com/c.js",)}),
        ("bot_challenge", {"assets": ("/_Incapsula_Resource?SWJIYLWA=1",)}),
        ("geo_block", {"text": "Sorry, this site is not available in your region."}),
        ("rate_limit", {"title": "Too Many Requests"}),
        ("login", {"url": "https://vendor.example/customer/account/login/referer/x"}),
        ("login", {"url": "https://vendor.example/password"}),
        ("login", {"has_password_field": True, "text": "Dealers only"}),
    ],
)
def test_access_barriers_are_detected(kind: str, answer: dict[str, Any]) -> None:
    assert detect_block(**answer) == kind


@pytest.mark.parametrize(
    "answer",
    [
        {"text": LONG, "links": LINKS},
        {"status": 404},
        {"status": 500},
        {"status": 503, "text": "Down for maintenance"},
        {"assets": ("/cdn-cgi/challenge-platform/scripts/jsd/main.js",), "text": LONG, "links": LINKS},
        {"assets": ("https://www.google.com/recaptcha/api.js",), "text": "Oak chair", "links": LINKS},
        {"has_password_field": True, "text": LONG, "links": LINKS},
        {"title": "Security check valves and fittings", "text": LONG, "links": LINKS},
        {"text": "Our oak is not available in your country.", "links": LINKS},
        {"title": "Just a moment", "json_ld": JsonLdFacts((frozenset({"name"}),))},
        {"url": "https://vendor.example/login-tables/oak"},
    ],
)
def test_other_pages_are_not_access_barriers(answer: dict[str, Any]) -> None:
    assert detect_block(**answer) is None


def test_a_requested_login_page_is_not_a_block() -> None:
    login = "https://vendor.example/login"
    page = PageFacts(text_length=5_000, links=LINKS)
    assert access_blocks.detect_access_block(login, ProbeResponse(login, 200), page) is None
