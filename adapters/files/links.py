"""Links that carry their own permission, signed with a key of the service and valid for a limited time."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from domain.kernel.clock import SKEW
from domain.kernel.errors import PermissionDenied
from domain.secrets.keys import SigningKeys
from domain.secrets.model import counting

_SIGNED = {"PUT": ("expires", "limit", "type"), "GET": ("expires", "filename")}


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission of a link: PUT of at most `limit` bytes of `content_type`, or GET with the file name `filename`."""

    content_type: str = ""
    limit: int = 0
    filename: str = ""


class Links:
    """Signer and verifier of links below `base_url`/objects/; former keys remain valid for verification."""

    def __init__(self, base_url: str, keys: SigningKeys) -> None:
        self._base, self._keys = base_url.rstrip("/"), keys

    def make(self, method: str, key: str, expires_at: datetime, grant: Grant) -> str:
        """Return the link for `method` PUT or GET on `key`."""
        query = {"expires": str(int(expires_at.timestamp()))}
        if method == "PUT":
            query |= {"limit": str(grant.limit), "type": grant.content_type}
        else:
            query["filename"] = grant.filename
        query["signature"] = _signature(self._keys.current, method, key, query)
        return f"{self._base}/objects/{quote(key)}?{urlencode(query)}"

    def verify(self, method: str, key: str, query: Mapping[str, str], now: datetime) -> Grant:
        """Return the permission of a request with these (decoded) query parameters. Raises PermissionDenied."""
        method = "GET" if method == "HEAD" else method
        names = _SIGNED.get(method)
        if names is None or set(query) != {*names, "signature"}:
            raise PermissionDenied("This link is not valid. Use target.url exactly as the API returned it.")
        if not self._signed(method, key, query, now):
            raise PermissionDenied("This link is not valid. Use target.url exactly as the API returned it.")
        if now >= datetime.fromtimestamp(int(query["expires"]), UTC) + SKEW:
            raise PermissionDenied("This link has expired. Request a new one from the API.")
        if method == "PUT":
            return Grant(content_type=query["type"], limit=int(query["limit"]))
        return Grant(filename=query["filename"])

    def _signed(self, method: str, key: str, query: Mapping[str, str], now: datetime) -> bool:
        signature = query["signature"].encode("utf-8", "surrogatepass")
        keys = (self._keys.current, *(former.key for former in counting(self._keys.former, now)))
        return any(hmac.compare_digest(signature, _signature(secret, method, key, query).encode()) for secret in keys)


def _signature(secret: bytes, method: str, key: str, query: Mapping[str, str]) -> str:
    fields = (method, key, *(query[name] for name in _SIGNED[method]))
    message = "".join(f"{len(field)}:{field}," for field in fields)
    return hmac.new(secret, message.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
