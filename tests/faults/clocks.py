"""Worker with a stepped clock: `python -m tests.faults.clocks`; SIGUSR1 sets it forward, SIGUSR2 back."""

import asyncio
import signal
from datetime import datetime, timedelta

from entrypoints.container import open_dependencies
from entrypoints.logs import configure_logging
from entrypoints.settings import read_settings
from entrypoints.worker.service import run_worker
from ports.clock import Clock
from tests.support.memory.clock import SystemClock

STEP = timedelta(seconds=40)
"""Far less than the five minutes that receivers tolerate in signatures."""


class SteppedClock(SystemClock):
    """The machine's clock with an offset."""

    off = timedelta()

    def now(self) -> datetime:
        return super().now() + self.off

    def step(self, to: timedelta) -> None:
        self.off = to


async def main() -> None:
    """Run the worker until it is stopped."""
    settings, clock, loop = read_settings(), SteppedClock(), asyncio.get_running_loop()
    configure_logging(settings.log_level)
    loop.add_signal_handler(signal.SIGUSR1, clock.step, STEP)
    loop.add_signal_handler(signal.SIGUSR2, clock.step, -STEP)
    async with open_dependencies(settings) as container:
        container[Clock] = clock
        await run_worker(container, settings, frozenset({"runs", "webhooks"}))


if __name__ == "__main__":
    asyncio.run(main())
