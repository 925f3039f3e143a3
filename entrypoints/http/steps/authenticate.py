"""Third step: who calls. Every reason for not knowing gives one and the same 401."""

import logging
from collections.abc import Awaitable
from dataclasses import replace
from typing import Final

from domain.access.model import is_bearer
from domain.access.usecases import AccessService, Proof
from domain.kernel.errors import AuthenticationRequired, DomainError, Unavailable
from domain.platform.ports import SchemaCheck
from entrypoints.http.addresses import Proxies
from entrypoints.http.request_state import RequestState
from entrypoints.http.strangers import Strangers
from entrypoints.http.ttl_cache import TtlCache

API: Final = "v1"
MCP: Final = "mcp"
LOG: Final = logging.getLogger("joinery.http")


def bearer(header: str | None) -> str:
    """The credential of an Authorization header (RFC 6750 §2.1). Raises AuthenticationRequired."""
    if header is None or header[:7].lower() != "bearer ":
        raise AuthenticationRequired
    text = header[7:].strip()
    if not text or not text.isascii():
        raise AuthenticationRequired
    return text


class Authenticate:
    """Asks the store once per credential and half second; what it said is judged anew for each request."""

    def __init__(self, access: AccessService, proxies: Proxies, schema: SchemaCheck | None = None) -> None:
        self._access = access
        self._schema = schema
        self._proxies = proxies
        self._known: TtlCache[Proof] = TtlCache()
        self._strangers: Strangers[Proof] = Strangers(access.find, access.known)

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Set the principal and the client's address. Raises AuthenticationRequired."""
        request = state.request
        state.address = self._proxies.client(request.client, request.headers)
        if state.principal is not None:
            return None
        text = bearer(request.headers.get("authorization"))
        digest = state.credential = self._access.digest(text)
        entry = self._known.get(digest)
        if entry is None:
            if not is_bearer(text):
                raise AuthenticationRequired
            return self._ask(state, digest)
        self._accept(state, entry[0])
        return None

    def _accept(self, state: RequestState, proof: Proof | None) -> None:
        principal = self._access.judge(proof, state.address, state.now)
        if principal.audience not in (None, MCP if state.via == MCP else API):
            raise AuthenticationRequired  # made for the other edge (RFC 8707)
        state.principal = principal if state.via is None else replace(principal, via=state.via)

    async def _ask(self, state: RequestState, digest: bytes) -> None:
        proof = await self._known.ask(digest, lambda: self._find(digest))
        self._accept(state, proof)

    async def _find(self, digest: bytes) -> Proof | None:
        """Look up a credential.

        Raises:
            Unavailable: The look-up failed, or the schema does not fit; neither shows that the credential is unknown.

        """
        try:
            seen = self._known.has_seen(digest)
            proof = await (self._access.find(digest) if seen else self._strangers.ask(digest))
        except DomainError:
            raise
        except Exception as error:
            LOG.exception("a credential could not be looked up")
            raise Unavailable("Credentials cannot be verified at the moment.") from error
        if proof is None and self._schema is not None:
            await self._schema.require()  # row security of another release may hide existing rows
        return proof
