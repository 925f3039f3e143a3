"""What the challenge of every 401 points at: how this API wants its credentials (RFC 9728, OAuth 2.0 Protected Resource Metadata).

The service is its own authorization server (docs/oauth.md). There is a document for the whole of it, and one for each edge
that a token can be bound to, at the place that RFC 9728 §3.1 gives it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from entrypoints.http.public_file import OPEN, PublicFile

GUIDE: Final = "/docs/guides/oauth"
PATH: Final = "/.well-known/oauth-protected-resource"


def address(base_url: str, place: str = "") -> str:
    """Where the document of what is served at `place` stands (RFC 9728 §3.1)."""
    return base_url.rstrip("/") + PATH + place


def file(base_url: str, place: str = "", scopes: Sequence[str] = (), guide: str = GUIDE) -> PublicFile:
    """The document of what is served at `place`: the resource, who gives tokens for it, how they are sent, where that is described.

    `scopes` are what it needs at the least.
    """
    base = base_url.rstrip("/")
    document: dict[str, object] = {
        "resource": base + place,
        "authorization_servers": [base],
        "resource_name": "Joinery",
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{base}{guide}",
    }
    if scopes:
        document["scopes_supported"] = list(scopes)
    return PublicFile(b"application/json", msgspec.json.encode(document), OPEN)
