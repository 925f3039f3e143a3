"""What every group of methods has: its driver and its core."""

from typing import Any

from .core import Core
from .driving import AsyncDriver, Driver
from .steps import Steps


class Group:
    """Methods of one area."""

    def __init__(self, driver: Driver, core: Core) -> None:
        self._driver, self._core = driver, core

    def _run(self, steps: Steps[Any]) -> Any:
        return self._driver.run(steps)


class AsyncGroup:
    """Methods of one area, to be awaited."""

    def __init__(self, driver: AsyncDriver, core: Core) -> None:
        self._driver, self._core = driver, core

    async def _run(self, steps: Steps[Any]) -> Any:
        return await self._driver.run(steps)
