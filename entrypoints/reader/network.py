"""In place of the network: a connector that asks for it while it reads is refused."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import NoReturn

from connectors.sdk.context import HttpResponse, Validators
from connectors.sdk.errors import BadData


class NoNetwork:
    """connectors.sdk.HttpClient that refuses."""

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: Validators | None = None,
        hosts: frozenset[str] | None = None,
        private: frozenset[str] = frozenset(),
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Refuse."""
        del url, headers, conditional, hosts, private
        return _refuse()

    def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Refuse."""
        del url, body, headers, hosts
        return _refuse()


def _refuse() -> NoReturn:
    raise BadData("A snapshot is read without network.")
