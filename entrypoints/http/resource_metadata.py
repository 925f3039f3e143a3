"""What the challenge of every 401 points at: how this API wants its credentials (RFC 9728, OAuth 2.0 Protected Resource Metadata).

The service is its own authorization server (docs/oauth.md). There is a document for the whole of it, and one for each edge
that a token can be bound to, at the place that RFC 9728 §3.1 gives it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from domain.access.model import SCOPES
from domain.oauth.model import DEFAULT_SCOPES
from entrypoints.http.public_file import OPEN, PublicFile

EDGES: Final = ("/v1", "/mcp")
PATH: Final = "/.well-known/oauth-protected-resource"


def address(base_url: str, place: str = "") -> str:
    """Where the document of what is served at `place` stands (RFC 9728 §3.1)."""
    return base_url.rstrip("/") + PATH + place


def file(base_url: str, edge: str = "") -> PublicFile:
    """The document of the service, or of its edge (`/v1`, `/mcp`): the resource, who gives tokens for it, how they are sent."""
    base = base_url.rstrip("/")
    document = {
        "resource": base + edge,
        "authorization_servers": [base],
        "scopes_supported": sorted(SCOPES if not edge else DEFAULT_SCOPES),
        "resource_name": "Joinery",
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{base}/docs/guides/oauth",
    }
    if scopes:
        document["scopes_supported"] = list(scopes)
    return PublicFile(b"application/json", msgspec.json.encode(document), OPEN)
