"""Sender of the requests of webhook deliveries, to vetted addresses only."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping

import aiohttp
from yarl import URL

from adapters.http import errors
from adapters.http.body import translate_http_errors
from adapters.http.resolver import AddressVetting, Lookup, NameResolver, open_guarded_session
from domain.webhooks.model import MAX_STORED_RESPONSE_BYTES, AttemptFailure
from domain.webhooks.ports import PostResult

_MAX_READ_BYTES = 64 * 1024
"""Maximum number of bytes of a response that are read; the connection of a longer response is not reused."""
_IDLE_SECONDS = 4.0
"""Seconds for which an unused connection stays open: less than the 5 s after which common servers close it."""
_MARGIN_SECONDS = 0.1
"""Seconds before the deadline of an attempt at which reading of the body stops, so that the status is not lost."""
_FAILURES = {
    failure.value: failure
    for failure in (AttemptFailure.REFUSED_ADDRESS, AttemptFailure.DNS, AttemptFailure.TLS, AttemptFailure.TIMEOUT)
}
"""Failures of an attempt by the `kind` of the OutboundError; all other kinds are `connect`."""


class HttpSender:
    """Sender of webhook requests, with one instance per process. In live mode, only ports 80 and 443 are permitted.

    Args:
        allowed_hosts: Private hosts that may be reached, as `host` or `host:port`.
        lookup: Name resolver other than the system's.
        tls: TLS context other than the system's.
    """

    def __init__(
        self,
        *,
        allowed_hosts: frozenset[str] = frozenset(),
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        allowed = frozenset(name.strip().lower() for name in allowed_hosts if name.strip())
        self._vetting = {True: AddressVetting(allowed), False: AddressVetting(allowed, ports=None)}
        self._lookup, self._tls = lookup or NameResolver().lookup, tls
        self._sessions: dict[tuple[bool, bool], aiohttp.ClientSession] = {}

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, livemode: bool, seconds: float
    ) -> PostResult:
        """Send a POST request. A failure is returned, not raised. Redirects are not followed.

        `seconds` is the maximum duration of the attempt. After that, the result is AttemptFailure.TIMEOUT.
        """
        try:
            target = URL(url)
            self._vetting[livemode].vet(target)
            deadline = asyncio.get_running_loop().time() + seconds
            async with asyncio.timeout_at(deadline):
                try:
                    return await self._send(self._open_session(livemode, True), target, body, headers, deadline)
                except (aiohttp.ServerDisconnectedError, ConnectionResetError, BrokenPipeError):
                    # The receiver may have closed a reused connection.
                    return await self._send(self._open_session(livemode, False), target, body, headers, deadline)
        except errors.OutboundError as error:
            return PostResult(_FAILURES.get(error.kind, AttemptFailure.CONNECT))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return PostResult(_classify_failure(error))

    @staticmethod
    async def _send(
        session: aiohttp.ClientSession, url: URL, body: bytes, headers: Mapping[str, str], deadline: float
    ) -> PostResult:
        """Send the request once; `deadline` is the end of the attempt as time of the event loop."""
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
            received = {name.lower(): value for name, value in response.headers.items()}
            return PostResult(
                None, response.status, received, await _read_beginning(response, deadline - _MARGIN_SECONDS)
            )

    def _open_session(self, livemode: bool, reuses_connections: bool) -> aiohttp.ClientSession:
        session = self._sessions.get((livemode, reuses_connections))
        if session is None:
            session = self._sessions[livemode, reuses_connections] = open_guarded_session(
                self._vetting[livemode],
                self._lookup,
                self._tls,
                keepalive_seconds=_IDLE_SECONDS if reuses_connections else 0,
                timeout=aiohttp.ClientTimeout(total=None),
                skip_auto_headers=("Accept", "Accept-Encoding"),
            )
        return session


async def _read_beginning(response: aiohttp.ClientResponse, deadline: float) -> bytes:
    """Return at most MAX_STORED_RESPONSE_BYTES of a response's body, fewer if reading fails or the deadline passes."""
    # Errors are ignored, because the status is already known.
    beginning, size = bytearray(), 0
    with contextlib.suppress(aiohttp.ClientError, OSError):
        async with asyncio.timeout_at(deadline):
            while size < _MAX_READ_BYTES and (data := await response.content.read(_MAX_READ_BYTES)):
                size += len(data)
                beginning += data[: max(0, MAX_STORED_RESPONSE_BYTES - len(beginning))]
    return bytes(beginning)


def _classify_failure(error: Exception) -> AttemptFailure:
    try:
        with translate_http_errors():
            raise error
    except errors.OutboundError as known:
        return _FAILURES.get(known.kind, AttemptFailure.CONNECT)
    except ValueError:
        return AttemptFailure.REFUSED_ADDRESS
