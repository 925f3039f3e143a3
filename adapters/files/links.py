"""Signed links, which permit one kind of request for an object until they expire."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from domain.kernel.clock import MAX_CLOCK_SKEW
from domain.kernel.errors import PermissionDenied
from domain.secrets.keys import SigningKeys
from domain.secrets.model import select_valid_keys

_SIGNED_PARAMETERS = {"PUT": ("expires", "limit", "type"), "GET": ("expires", "filename")}


@dataclass(frozen=True, slots=True)
class LinkPermissions:
    """Permissions of a signed link: PUT of an object, or GET as a download.

    Attributes:
        content_type: The required content type of a PUT.
        max_bytes: Maximum bytes of a PUT.
        filename: The file name of the download.
    """

    content_type: str = ""
    max_bytes: int = 0
    filename: str = ""


class LinkSigner:
    """Signer and verifier of links to objects.

    The current key signs. A link that was signed with a former key is valid only until that key expires.

    Args:
        base_url: The service's URL, to which /objects/ and the key of the object are appended.
        keys: The current and former keys for signatures.
    """

    def __init__(self, base_url: str, keys: SigningKeys) -> None:
        self._base, self._keys = base_url.rstrip("/"), keys

    def create_link(self, method: str, key: str, expires_at: datetime, permissions: LinkPermissions) -> str:
        """Return a signed link for an object.

        Args:
            method: The permitted method, PUT or GET.
            key: The key of the object.
            expires_at: The time at which the link expires.
            permissions: The restrictions of the request.
        """
        query = {"expires": str(int(expires_at.timestamp()))}
        if method == "PUT":
            query |= {"limit": str(permissions.max_bytes), "type": permissions.content_type}
        else:
            query["filename"] = permissions.filename
        query["signature"] = _compute_signature(self._keys.current, method, key, query)
        return f"{self._base}/objects/{quote(key)}?{urlencode(query)}"

    def verify(self, method: str, key: str, query: Mapping[str, str], now: datetime) -> LinkPermissions:
        """Return what a signed link permits.

        Args:
            method: The method of the request.
            key: The key of the object.
            query: The decoded query parameters of the request.
            now: The current time.

        Raises:
            PermissionDenied: The signature or the parameters are invalid, or the link has expired.
        """
        method = "GET" if method == "HEAD" else method
        names = _SIGNED_PARAMETERS.get(method)
        if names is None or set(query) != {*names, "signature"}:
            raise PermissionDenied("This link is not valid. Use target.url exactly as the API returned it.")
        if not self._has_valid_signature(method, key, query, now):
            raise PermissionDenied("This link is not valid. Use target.url exactly as the API returned it.")
        if now >= datetime.fromtimestamp(int(query["expires"]), UTC) + MAX_CLOCK_SKEW:
            raise PermissionDenied("This link has expired. Request a new one from the API.")
        if method == "PUT":
            return LinkPermissions(content_type=query["type"], max_bytes=int(query["limit"]))
        return LinkPermissions(filename=query["filename"])

    def _has_valid_signature(self, method: str, key: str, query: Mapping[str, str], now: datetime) -> bool:
        """Return whether the query is signed with the current key, or with a former key that is valid at `now`."""
        signature = query["signature"].encode("utf-8", "surrogatepass")
        keys = (self._keys.current, *(former.key for former in select_valid_keys(self._keys.former, now)))
        return any(
            hmac.compare_digest(signature, _compute_signature(secret, method, key, query).encode()) for secret in keys
        )


def _compute_signature(secret: bytes, method: str, key: str, query: Mapping[str, str]) -> str:
    """Compute the signature of a link over method, key and signed parameters."""
    fields = (method, key, *(query[name] for name in _SIGNED_PARAMETERS[method]))
    message = "".join(f"{len(field)}:{field}," for field in fields)
    return hmac.new(secret, message.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
