"""What the challenge of every 401 points at: how this API wants its credentials (RFC 9728, OAuth 2.0 Protected Resource Metadata).

No authorization server is named: there is none, and keys are made by the operator's command line.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from entrypoints.http.public_file import OPEN, PublicFile

PATH: Final = "/.well-known/oauth-protected-resource"


def address(base_url: str, place: str = "") -> str:
    """Where the document of what is served at `place` stands (RFC 9728 §3.1)."""
    return base_url.rstrip("/") + PATH + place


def file(base_url: str, place: str = "", scopes: Sequence[str] = (), guide: str = "/docs") -> PublicFile:
    """The document: the resource, how its credentials are sent, where that is described; `scopes` are what it needs at the least."""
    base = base_url.rstrip("/")
    document: dict[str, object] = {
        "resource": base + place,
        "resource_name": "Joinery",
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{base}{guide}",
    }
    if scopes:
        document["scopes_supported"] = list(scopes)
    return PublicFile(b"application/json", msgspec.json.encode(document), OPEN)
