"""Sender of webhook deliveries over kept connections, to vetted addresses only."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping

import aiohttp
from yarl import URL

from adapters.http import errors
from adapters.http.body import translated
from adapters.http.resolver import Lookup, Names, Vetting, guarded_session
from domain.webhooks.model import STORED_ANSWER, AttemptFailure
from domain.webhooks.ports import Sent

_READ = 64 * 1024
"""Bytes of a response that are read so that its connection can be reused; a longer response closes it."""
_IDLE = 4.0
"""Seconds for which an unused connection is kept: less than the 5 s after which common servers close theirs."""
_MARGIN = 0.1
"""Seconds before the end of an attempt at which reading a response stops."""
_FAILURES = {
    failure.value: failure
    for failure in (AttemptFailure.REFUSED_ADDRESS, AttemptFailure.DNS, AttemptFailure.TLS, AttemptFailure.TIMEOUT)
}
"""Failures with the same name as a kind of error (adapters/http/errors.py); all others are `connect`."""


class HttpSender:
    """Sender of a process. `allowed_hosts` and `lookup` as in GuardedClient; live mode is limited to ports 80 and 443."""

    def __init__(
        self,
        *,
        allowed_hosts: frozenset[str] = frozenset(),
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        allowed = frozenset(name.strip().lower() for name in allowed_hosts if name.strip())
        self._vetting = {True: Vetting(allowed), False: Vetting(allowed, ports=None)}
        self._lookup, self._tls = lookup or Names().lookup, tls
        self._sessions: dict[tuple[bool, bool], aiohttp.ClientSession] = {}

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, livemode: bool, seconds: float) -> Sent:
        """Send the request without following redirects; a receiver's failure is returned, never raised.

        A kept connection that proves closed says nothing about the receiver, so a new one is tried at once.
        """
        try:
            target = URL(url)
            self._vetting[livemode].vet(target)
            deadline = asyncio.get_running_loop().time() + seconds
            async with asyncio.timeout_at(deadline):
                try:
                    return await self._send(self._session(livemode, True), target, body, headers, deadline)
                except (aiohttp.ServerDisconnectedError, ConnectionResetError, BrokenPipeError):
                    return await self._send(self._session(livemode, False), target, body, headers, deadline)
        except errors.OutboundError as error:
            return Sent(_FAILURES.get(error.kind, AttemptFailure.CONNECT))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Sent(_failure(error))

    @staticmethod
    async def _send(
        session: aiohttp.ClientSession, url: URL, body: bytes, headers: Mapping[str, str], deadline: float
    ) -> Sent:
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
            received = {name.lower(): value for name, value in answer.headers.items()}
            return Sent(None, answer.status, received, await _beginning(answer, deadline - _MARGIN))

    def _session(self, livemode: bool, kept: bool) -> aiohttp.ClientSession:
        session = self._sessions.get((livemode, kept))
        if session is None:
            session = self._sessions[livemode, kept] = guarded_session(
                self._vetting[livemode],
                self._lookup,
                self._tls,
                keep=_IDLE if kept else 0,
                timeout=aiohttp.ClientTimeout(total=None),
                skip_auto_headers=("Accept", "Accept-Encoding"),
            )
        return session


async def _beginning(answer: aiohttp.ClientResponse, deadline: float) -> bytes:
    """Return the response's first bytes. Its status is already known, so errors in the rest are ignored."""
    beginning, size = bytearray(), 0
    with contextlib.suppress(aiohttp.ClientError, OSError):
        async with asyncio.timeout_at(deadline):
            while size < _READ and (data := await answer.content.read(_READ)):
                size += len(data)
                beginning += data[: max(0, STORED_ANSWER - len(beginning))]
    return bytes(beginning)


def _failure(error: Exception) -> AttemptFailure:
    try:
        with translated():
            raise error
    except errors.OutboundError as known:
        return _FAILURES.get(known.kind, AttemptFailure.CONNECT)
    except ValueError:
        return AttemptFailure.REFUSED_ADDRESS
