"""Commands that run one process or all processes of the service, or print the OpenAPI document."""

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

from adapters.postgres import schema_migrations as migrations
from domain.kernel.errors import Unavailable
from domain.platform.ports import Instances, SchemaCheck
from domain.platform.usecases import Heartbeat
from domain.secrets.usecases.keyring import KeyRingKeeper
from entrypoints import settings
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.errors import UpError
from entrypoints.logs import configure_logging
from entrypoints.settings import get_release_version
from entrypoints.stop_signals import catch_stop_signals

LOG = logging.getLogger("joinery.process")
SCHEMA_CHECK_INTERVAL_SECONDS = 1.0
"""Seconds between two checks of the schema while it is incompatible."""
MAX_FIRST_SCHEMA_CHECK_SECONDS = 5.0
"""Maximum seconds that the API waits for its first schema check; then it listens without the result."""


async def _run_process(
    process: str,
    run: Callable[[Dependencies, settings.Settings], Awaitable[None]],
    overrides: Mapping[str, str] | None = None,
    heartbeat_roles: Sequence[str] = (),
) -> int:
    """Run a process of the service until it stops; return the exit code.

    Args:
        process: The name of the process in telemetry.
        run: Runs the process with its dependencies and settings.
        overrides: Variables that replace those of the environment.
        heartbeat_roles: The roles of the process (domain/platform/instances.py) for which this function records
            heartbeats. Empty for the API, because `create_app` records its heartbeats.
    """
    configured = settings.read_settings({**os.environ, **(overrides or {})})
    configure_logging(configured.log_level)
    LOG.info("starting", extra={"role": process, "version": get_release_version(), "pid": os.getpid()})
    async with open_dependencies(configured, process) as dependencies:
        schema = dependencies[SchemaCheck]
        if process == "api":
            # The API listens even if the database is unavailable.
            with contextlib.suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(MAX_FIRST_SCHEMA_CHECK_SECONDS):
                    await schema.check()
        elif not await _wait_for_schema(schema):
            return 0
        tasks = [
            asyncio.create_task(dependencies[KeyRingKeeper].watch(), name="key ring watch"),
            asyncio.create_task(
                schema.watch() if process == "api" else _stop_on_incompatible_schema(schema),
                name="database schema watch",
            ),
        ]
        heartbeat = Heartbeat(dependencies[Instances], heartbeat_roles) if heartbeat_roles else None
        if heartbeat is not None:
            tasks.append(asyncio.create_task(heartbeat.run(), name="heartbeat"))
        try:
            await run(dependencies, configured)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if heartbeat is not None:
                await heartbeat.remove()
    LOG.info("stopped", extra={"role": process})
    return 0


async def _wait_for_schema(schema: SchemaCheck) -> bool:
    """Wait until the database's schema is compatible and return True; return False if a stop signal arrives first."""
    with catch_stop_signals() as stop:
        while not stop.is_set():
            try:
                if await schema.check() is None:
                    return True
            except Unavailable as error:
                LOG.warning("database not ready, waiting: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SCHEMA_CHECK_INTERVAL_SECONDS):
                    await stop.wait()
    return False


async def _stop_on_incompatible_schema(schema: SchemaCheck) -> None:
    """Wait until the database's schema becomes incompatible, then send SIGTERM to this process."""
    # the supervisor restarts the process, which then waits until the schema is compatible
    await schema.watch(until_incompatible=True)
    os.kill(os.getpid(), signal.SIGTERM)


# Each process imports only what it needs, so some imports are inside the commands.


async def api(*, operators_port: int | None = None) -> int:
    """Run the API (requires JOINERY_DATABASE_URL and JOINERY_SECRET).

    Args:
        operators_port: Port of the operators' page, on this machine only.
    """
    from entrypoints.api.server import serve  # noqa: PLC0415

    return await _run_process(
        "api", serve, {} if operators_port is None else {"JOINERY_OPERATORS_PORT": str(operators_port)}
    )


async def worker(
    *, duties: Annotated[tuple[Literal["runs", "webhooks"], ...], Parameter("--for")] = ("runs", "webhooks")
) -> int:
    """Run a worker, which executes jobs and delivers webhooks.

    Args:
        duties: Execute only jobs (`runs`), or only deliver webhooks. Repeatable.
    """
    from entrypoints.worker.service import run_worker  # noqa: PLC0415

    unique_duties = frozenset(duties)
    process = "worker" if "runs" in unique_duties else "webhooks"
    return await _run_process(process, partial(run_worker, duties=unique_duties), heartbeat_roles=sorted(unique_duties))


async def scheduler() -> int:
    """Run the scheduler, which starts due runs, notifies workers and performs maintenance."""
    from entrypoints.scheduler.service import run_scheduler  # noqa: PLC0415

    return await _run_process("scheduler", run_scheduler, heartbeat_roles=["scheduler"])


async def mail() -> int:
    """Run the mail listener, which receives messages for sources' inbound addresses."""
    from entrypoints.mail.service import run_mail  # noqa: PLC0415
    from entrypoints.mail.settings import read_mail_settings  # noqa: PLC0415

    return await _run_process("mail", partial(run_mail, mail=read_mail_settings()), heartbeat_roles=["mail"])


async def up(
    *,
    data_dir: Path | None = None,
    port: int | None = None,
    operators_port: int | None = None,
    demo: bool = False,
) -> int:
    """Run the whole service on this machine, with an embedded database and queue.

    Args:
        data_dir: Directory of all data (default: $JOINERY_DATA_DIR or ./.joinery).
        port: Port of the API (default: $JOINERY_PORT or 8080).
        operators_port: Port of the operators' page (default: the port after the API's).
        demo: Add a retailer with two vendors' feeds and an API key, and a vendor that publishes its catalogue.
    """
    from entrypoints.up.supervisor import UpOptions, get_default_data_dir, run_up  # noqa: PLC0415

    data_dir = data_dir or get_default_data_dir()
    environment = settings.resolve_file_settings(os.environ)
    if operators_port is not None:
        environment["JOINERY_OPERATORS_PORT"] = str(operators_port)
    on_ready = None
    if demo:
        from entrypoints.demo.demonstration import prepare_environment, run_demo  # noqa: PLC0415

        environment |= prepare_environment(data_dir)
        on_ready = run_demo
    if port is None:
        port = int(os.environ.get("JOINERY_PORT") or 8080)
    return await run_up(
        UpOptions(
            data_dir, port, includes_demo=demo, on_servers_ready=_migrate, on_ready=on_ready, environment=environment
        )
    )


async def _migrate(env: Mapping[str, str]) -> None:
    """Migrate the database to this release's schema. Raises UpError."""
    try:
        await migrations.migrate(env["JOINERY_DATABASE_URL"])
    except migrations.MigrationError as error:
        raise UpError(str(error)) from error


def print_openapi() -> int:
    """Print the OpenAPI document."""
    from entrypoints.areas.registry import AREAS  # noqa: PLC0415
    from entrypoints.operations.openapi import build_document  # noqa: PLC0415
    from entrypoints.operations.table import OperationTable  # noqa: PLC0415

    base = os.environ.get("JOINERY_BASE_URL", "http://127.0.0.1:8080").rstrip("/")
    docs = os.environ.get("JOINERY_DOCS_URL", base).rstrip("/")
    print(json.dumps(build_document(OperationTable(AREAS), base, docs), indent=2))
    return 0
