"""Fifth step: the dated version in which the answer is shaped, pinned by the organisation's first request."""

from collections.abc import Awaitable

from domain.access.usecases import AccessService
from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.versions import Versions
from entrypoints.http.request_state import RequestState


class ChooseVersion:
    """The version named, else the one pinned; pinned is what the first request named, or the newest."""

    def __init__(self, access: AccessService, versions: Versions) -> None:
        self._access = access
        self._versions = versions

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Set the version. Raises InvalidRequest for one that is not supported."""
        named = state.request.headers.get("service-version")
        if named is not None and not self._versions.supports(named):
            detail = f"There is no such version. Use {' or '.join(self._versions.dates)}, or leave the header out."
            raise InvalidRequest(detail, fields=(FieldError("header.Service-Version", "invalid_value", detail),))
        pinned = state.caller.organisation.api_version
        if pinned is None:
            return self._pin(state, named)
        state.version = named or self._supported(pinned)
        return None

    async def _pin(self, state: RequestState, named: str | None) -> None:
        pinned = await self._access.pin_version(state.caller.tenant.org, named or self._versions.latest)
        state.version = named or self._supported(pinned)

    def _supported(self, pinned: str) -> str:
        return pinned if self._versions.supports(pinned) else self._versions.latest
