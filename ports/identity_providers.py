"""Asking an organisation's identity provider who somebody is (OpenID Connect, authorization code with PKCE)."""

from collections.abc import Mapping
from typing import Protocol

from domain.sso.model import Attempt, Client, Identity


class ProviderFault(Exception):
    """The provider cannot be used, or what it says does not hold. The sentence may be shown, and names no secret."""


class IdentityProviders(Protocol):
    """Providers of any address that may be reached; what they answer is theirs, and is checked."""

    async def issuer(self, issuer: str) -> str:
        """The issuer as its own document spells it, once that says all that is needed. Raises ProviderFault."""
        ...

    async def authorization_url(self, client: Client, attempt: Attempt, hint: str) -> str:
        """Where to send the browser; `hint` is the address that somebody said is theirs. Raises ProviderFault.

        An attempt with `again_since` has the provider ask who it is, also of somebody whom it remembers.
        """
        ...

    async def identity(self, client: Client, attempt: Attempt, answer: Mapping[str, str]) -> Identity:
        """Who somebody is, of the parameters that the browser brought back. Raises ProviderFault.

        Of an attempt with `again_since`, also when the provider tells that they have shown it before that.
        """
        ...
