"""POSTs questions to providers over one kept set of connections, within bounds of time and size."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp

_READ: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds for a whole question and for a connection; bytes that an answer has at most."""

    total_seconds: float = 100.0
    connect_seconds: float = 10.0
    body_bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `headers` ignore case. `body` is None when it was too large, or packed although nobody asked for that."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None


class NotReached(Exception):
    """The question did not get to the provider, so it took nothing."""


class NoAnswer(Exception):
    """The question may have been read and answered, but no whole answer came."""


class ModelClient:
    """One a process, for addresses that the operator has set: redirects are not followed, proxies not looked for.

    Messages of its errors name no address, no header and no body.
    """

    def __init__(self, version: str = "0", bounds: Bounds | None = None) -> None:
        self._agent, self._bounds = f"Joinery/{version}", bounds or Bounds()
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """One request. Raises NotReached, NoAnswer."""
        sent = {**headers, "Content-Type": "application/json", "Accept": "application/json"}
        sent |= {"Accept-Encoding": "identity", "User-Agent": self._agent}
        try:
            async with (
                asyncio.timeout(self._bounds.total_seconds),
                self._opened().post(url, data=body, headers=sent, allow_redirects=False) as response,
            ):
                return Answer(response.status, response.headers, await self._body(response))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL):
            raise NotReached("The provider cannot be reached.") from None
        except TimeoutError:
            raise NoAnswer("The provider did not answer in time.") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise NoAnswer("The provider broke off before its answer was whole.") from None

    async def _body(self, response: aiohttp.ClientResponse) -> bytes | None:
        packed = response.headers.get("Content-Encoding", "identity").strip().lower()
        if packed not in ("", "identity") or (response.content_length or 0) > self._bounds.body_bytes:
            response.close()
            return None
        body = bytearray()
        while data := await response.content.read(_READ):
            body += data
            if len(body) > self._bounds.body_bytes:
                response.close()
                return None
        return bytes(body)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, limit_per_host=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._bounds.connect_seconds),
            )
        return self._session
