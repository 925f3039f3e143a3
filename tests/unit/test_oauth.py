"""OAuth rules: URLs of apps, redirect addresses, sentences of scopes, and recognition of secrets."""

from datetime import timedelta

from domain.access.model import SCOPES
from domain.oauth import redirects
from domain.oauth.model import AppKind
from domain.oauth.usecases.clients import is_document_url, parse_cache_time
from entrypoints.operations.scopes import SENTENCE_BY_SCOPE


def test_urls_of_apps_are_recognised() -> None:
    for good in ("https://editor.example/client.json", "https://editor.example:443/a/b?v=1"):
        assert is_document_url(good), good
    for bad in (
        "http://editor.example/c", "https://editor.example", "https://editor.example/", "https://u@editor.example/c",
        "https://editor.example/a/../c", "https://editor.example/./c", "https://editor.example/c#f", "https://localhost/c",
        "https://Editor.example/c", "https://[::1]/c", "https://editor.example/ c", "https://editor.example\\@evil.example/c",
    ):  # fmt: skip
        assert not is_document_url(bad), bad
    assert parse_cache_time({"cache-control": "public, max-age=7200"}) == timedelta(hours=2)
    assert parse_cache_time({"cache-control": "max-age=99999999"}) == timedelta(hours=24)
    assert (
        parse_cache_time({"cache-control": "max-age=0"})
        == parse_cache_time({"cache-control": "no-store"})
        == timedelta(minutes=1)
    )


def test_redirect_addresses_are_matched() -> None:
    native, web = AppKind.NATIVE, AppKind.WEB
    for registered, requested in (
        ("http://127.0.0.1/cb", "http://127.0.0.1:9999/cb"),
        ("http://localhost:3000/cb", "http://localhost/cb"),
        ("http://[::1]:1/cb?x", "http://[::1]:2/cb?x"),
    ):
        assert redirects.matches_redirect_uri(registered, requested, native) and not redirects.matches_redirect_uri(
            registered, requested, web
        )
    for registered, requested in (
        ("http://127.0.0.1/cb", "http://127.0.0.1:99999/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:80@evil.example/cb"),
        ("http://127.0.0.1/cb", "http://localhost/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1/cb/x"),
        ("http://127.0.0.1/cb", "http://127.0.0.1.evil.example/cb"),
        ("https://127.0.0.1/cb", "https://127.0.0.1:1/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1/cb\n"),
    ):
        assert not redirects.matches_redirect_uri(registered, requested, native), requested


def test_every_scope_has_a_sentence() -> None:
    assert SENTENCE_BY_SCOPE.keys() == SCOPES
