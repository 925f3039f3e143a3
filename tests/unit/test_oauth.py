"""OAuth's rules: which URLs are apps, which addresses are meant, what a scope is called, and how secrets are recognised."""

from datetime import timedelta

from domain.access.model import SCOPES
from domain.oauth import redirects
from domain.oauth.model import AppKind
from domain.oauth.usecases.clients import freshness, is_document
from entrypoints.operations.scopes import SENTENCES


def test_which_urls_may_be_an_app() -> None:
    for good in ("https://editor.example/client.json", "https://editor.example:443/a/b?v=1"):
        assert is_document(good), good
    for bad in (
        "http://editor.example/c", "https://editor.example", "https://editor.example/", "https://u@editor.example/c",
        "https://editor.example/a/../c", "https://editor.example/./c", "https://editor.example/c#f", "https://localhost/c",
        "https://Editor.example/c", "https://[::1]/c", "https://editor.example/ c", "https://editor.example\\@evil.example/c",
    ):  # fmt: skip
        assert not is_document(bad), bad
    assert freshness({"cache-control": "public, max-age=7200"}) == timedelta(hours=2)
    assert freshness({"cache-control": "max-age=99999999"}) == timedelta(hours=24)
    assert freshness({"cache-control": "max-age=0"}) == freshness({"cache-control": "no-store"}) == timedelta(minutes=1)


def test_which_addresses_are_meant() -> None:
    native, web = AppKind.NATIVE, AppKind.WEB
    for registered, asked in (
        ("http://127.0.0.1/cb", "http://127.0.0.1:9999/cb"),
        ("http://localhost:3000/cb", "http://localhost/cb"),
        ("http://[::1]:1/cb?x", "http://[::1]:2/cb?x"),
    ):
        assert redirects.is_meant(registered, asked, native) and not redirects.is_meant(registered, asked, web)
    for registered, asked in (
        ("http://127.0.0.1/cb", "http://127.0.0.1:99999/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:80@evil.example/cb"),
        ("http://127.0.0.1/cb", "http://localhost/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1/cb/x"),
        ("http://127.0.0.1/cb", "http://127.0.0.1.evil.example/cb"),
        ("https://127.0.0.1/cb", "https://127.0.0.1:1/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1/cb\n"),
    ):
        assert not redirects.is_meant(registered, asked, native), asked


def test_every_scope_has_a_sentence() -> None:
    assert SENTENCES.keys() == SCOPES
