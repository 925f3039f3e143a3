"""Commands that run one process or all in one, and print the OpenAPI document."""

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from adapters.postgres import migrate as migrations
from domain.kernel.errors import Unavailable
from domain.platform.ports import Instances, SchemaCheck
from domain.platform.usecases import Heartbeat
from domain.secrets.usecases.keyring import Keyring
from entrypoints import settings
from entrypoints.container import opened
from entrypoints.dependencies import Dependencies
from entrypoints.errors import UpError
from entrypoints.factories import product_version
from entrypoints.logs import configure
from entrypoints.stopping import stopping_on_signals

LOG = logging.getLogger("joinery.process")
RETRY = 1.0
"""Seconds between two checks of an incompatible schema."""
FIRST_CHECK = 5.0
"""Maximum seconds that the API waits for its first schema check before it listens."""


async def _serve(
    process: str,
    run: Callable[[Dependencies, settings.Settings], Awaitable[None]],
    overrides: Mapping[str, str] | None = None,
    roles: Sequence[str] = (),
) -> int:
    """Run a process until it stops. Heartbeats are recorded for `roles`; the API records its own."""
    configured = settings.from_environment({**os.environ, **(overrides or {})})
    configure(configured.log_level)
    LOG.info("starting", extra={"role": process, "version": product_version(), "pid": os.getpid()})
    async with opened(configured, process) as container:
        schema = container[SchemaCheck]
        if process == "api":
            # The API listens even if the database is unavailable.
            with contextlib.suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(FIRST_CHECK):
                    await schema.check()
        elif not await _wait_for_schema(schema):
            return 0
        tasks = [
            asyncio.create_task(container[Keyring].watch(), name="watching the key ring"),
            asyncio.create_task(
                schema.watch() if process == "api" else _stop_on_fault(schema), name="watching the schema"
            ),
        ]
        heartbeat = Heartbeat(container[Instances], roles) if roles else None
        if heartbeat is not None:
            tasks.append(asyncio.create_task(heartbeat.run(), name="heartbeat"))
        try:
            await run(container, configured)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if heartbeat is not None:
                await heartbeat.leave()
    LOG.info("stopped", extra={"role": process})
    return 0


async def _wait_for_schema(schema: SchemaCheck) -> bool:
    """Wait until the schema is compatible. Return False if a stop signal arrives first."""
    with stopping_on_signals() as stop:
        while not stop.is_set():
            try:
                if await schema.check() is None:
                    return True
            except Unavailable as error:
                LOG.warning("waiting for the database: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY):
                    await stop.wait()
    return False


async def _stop_on_fault(schema: SchemaCheck) -> None:
    """Send SIGTERM to this process when the schema becomes incompatible; the supervisor restarts it, and it waits."""
    await schema.watch(until_fault=True)
    os.kill(os.getpid(), signal.SIGTERM)


# Each process imports only what it needs, so some imports are inside the commands.


async def api(*, operators_port: int | None = None) -> int:
    """Run the API (requires JOINERY_DATABASE_URL and JOINERY_SECRET).

    Args:
        operators_port: port of the operators' page, on this machine only
    """
    from entrypoints.api.server import serve  # noqa: PLC0415

    return await _serve("api", serve, {} if operators_port is None else {"JOINERY_OPERATORS_PORT": str(operators_port)})


async def worker(
    *, duties: Annotated[tuple[Literal["runs", "webhooks"], ...], Parameter("--for")] = ("runs", "webhooks")
) -> int:
    """Run a worker: executes runs, delivers webhooks.

    Args:
        duties: limit the worker to this duty; repeatable
    """
    from entrypoints.worker.service import run_worker  # noqa: PLC0415

    roles = frozenset(duties)
    process = "worker" if "runs" in roles else "webhooks"
    return await _serve(process, partial(run_worker, duties=roles), roles=sorted(roles))


async def scheduler() -> int:
    """Run the scheduler: due pulls, waking workers, maintenance."""
    from entrypoints.scheduler.service import run_scheduler  # noqa: PLC0415

    return await _serve("scheduler", run_scheduler, roles=["scheduler"])


async def mail() -> int:
    """Run the mail listener: receives messages for sources' inbound addresses."""
    from entrypoints.mail.service import run_mail  # noqa: PLC0415
    from entrypoints.mail.settings import mail_settings  # noqa: PLC0415

    return await _serve("mail", partial(run_mail, mail=mail_settings()), roles=["mail"])


async def up(
    *,
    data_dir: Path | None = None,
    port: int | None = None,
    operators_port: int | None = None,
    demo: bool = False,
) -> int:
    """Run all processes with embedded servers, on this machine only.

    Args:
        data_dir: directory of all data (default: $JOINERY_DATA_DIR or ./.joinery)
        port: the API's port (default: $JOINERY_PORT or 8080)
        operators_port: the operators' page's port (default: the next one)
        demo: add an organisation with two vendors' feeds, and an API key
    """
    from entrypoints.up.supervisor import UpOptions, default_data_dir, run  # noqa: PLC0415

    data_dir = data_dir or default_data_dir()
    environment = settings.read_file_settings(os.environ)
    if operators_port is not None:
        environment["JOINERY_OPERATORS_PORT"] = str(operators_port)
    on_ready = None
    if demo:
        from entrypoints.demo.demonstration import demonstrate, prepare_environment  # noqa: PLC0415

        environment |= prepare_environment(data_dir)
        on_ready = demonstrate
    if port is None:
        port = int(os.environ.get("JOINERY_PORT") or 8080)
    return await run(UpOptions(data_dir, port, demo=demo, prepare=_prepare, on_ready=on_ready, environment=environment))


async def _prepare(env: Mapping[str, str]) -> None:
    try:
        await migrations.migrate(env["JOINERY_DATABASE_URL"])
    except migrations.MigrationError as error:
        raise UpError(str(error)) from error


def openapi() -> int:
    """Print the OpenAPI document."""
    from entrypoints.areas.registry import AREAS  # noqa: PLC0415
    from entrypoints.operations.openapi import document  # noqa: PLC0415
    from entrypoints.operations.table import Table  # noqa: PLC0415

    base = os.environ.get("JOINERY_BASE_URL", "http://127.0.0.1:8080").rstrip("/")
    docs = os.environ.get("JOINERY_DOCS_URL", base).rstrip("/")
    print(json.dumps(document(Table(AREAS), base, docs), indent=2))
    return 0
