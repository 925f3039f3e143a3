"""What the challenge of every 401 points at: how this API wants its credentials (RFC 9728, OAuth 2.0 Protected Resource Metadata).

No authorization server is named: there is none, and keys are made by the operator's command line.
"""

from typing import Final

import msgspec

from entrypoints.http.public_file import OPEN, PublicFile

PATH: Final = "/.well-known/oauth-protected-resource"


def address(base_url: str) -> str:
    """Where the document is served."""
    return base_url.rstrip("/") + PATH


def file(base_url: str) -> PublicFile:
    """The document: the resource, how its credentials are sent, where that is described."""
    base = base_url.rstrip("/")
    document = {
        "resource": base,
        "resource_name": "Joinery",
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{base}/docs",
    }
    return PublicFile(b"application/json", msgspec.json.encode(document), OPEN)
