"""The clients without their groups: settings, connections, and their end."""

from types import TracebackType
from typing import Any, Self

import httpx

from .core import core_of, environment
from .driving import AsyncDriver, Driver


class SyncClient:
    """Blocks. Close it, or use it with `with`. Threads may share it."""

    _version = ""
    _agent = ""

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 4,
        version: str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`base_url` and `key` default to JOINERY_URL and JOINERY_KEY; `timeout` is in seconds (inf: no end).

        `retries` is how often a call is tried again; `version` another dated version of the API than this package is
        made for; `transport` another httpx transport. Raises ValueError when address or key are missing.
        """
        core = core_of(base_url, key, version or self._version, self._agent, retries, environment())
        self._driver = Driver(timeout, transport)
        self._mount(self._driver, core)

    def _mount(self, driver: Any, core: Any) -> None:
        """Give the client its groups."""

    def close(self) -> None:
        """Close its connections."""
        self._driver.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connections."""
        self.close()


class AsyncClient:
    """For asyncio. Close it, or use it with `async with`."""

    _version = ""
    _agent = ""

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 4,
        version: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """As of `Joinery`."""
        core = core_of(base_url, key, version or self._version, self._agent, retries, environment())
        self._driver = AsyncDriver(timeout, transport)
        self._mount(self._driver, core)

    def _mount(self, driver: Any, core: Any) -> None:
        """Give the client its groups."""

    async def close(self) -> None:
        """Close its connections."""
        await self._driver.close()

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connections."""
        await self.close()
