"""The commands that run one process, migrate, and print the OpenAPI document."""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from domain.platform.ports import SchemaCheck

from adapters.postgres import migrate as migrations
from domain.kernel.errors import Unavailable
from domain.platform.usecases import Heartbeat
from entrypoints import settings
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import environment
from entrypoints.container import Container, opened
from entrypoints.factories import product_version
from entrypoints.logs import configure
from entrypoints.stopping import stopping_on_signals

LOG: Final = logging.getLogger("joinery.process")
RETRY: Final = 1.0
"""Seconds between two checks of a schema that does not fit."""
FIRST_CHECK: Final = 5.0
"""Seconds that the API waits for its first check of the schema before it listens."""


async def _serving(
    process: str,
    run: Callable[[Container, settings.Settings], Awaitable[None]],
    given: Mapping[str, str] | None = None,
    roles: Sequence[str] = (),
) -> int:
    """Run a process until it stops. Heartbeats are recorded for `roles`; the API records its own."""
    configured = settings.from_environment({**os.environ, **(given or {})})
    configure(configured.log_level)
    LOG.info("starting", extra={"role": process, "version": product_version(), "pid": os.getpid()})
    async with opened(configured, process) as container:
        schema = container.schema()
        if process == "api":
            # The API listens even while the database does not answer.
            with contextlib.suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(FIRST_CHECK):
                    await schema.check()
        elif not await _wait_for_schema(schema):
            return 0
        watching = [
            asyncio.create_task(container.keyring().watch(), name="watching the key ring"),
            asyncio.create_task(
                schema.watch() if process == "api" else _stop_on_fault(schema), name="watching the schema"
            ),
        ]
        heartbeat = Heartbeat(container.instances(), roles) if roles else None
        if heartbeat is not None:
            watching.append(asyncio.create_task(heartbeat.run(), name="heartbeat"))
        try:
            await run(container, configured)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            if heartbeat is not None:
                await heartbeat.leave()
    LOG.info("stopped", extra={"role": process})
    return 0


async def _wait_for_schema(schema: SchemaCheck) -> bool:
    """Wait until the schema is compatible. Return False if a signal to stop comes first."""
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
    """Send SIGTERM to this process once the schema no longer fits; its supervisor restarts it, and it waits."""
    await schema.watch(until_fault=True)
    os.kill(os.getpid(), signal.SIGTERM)


async def api(options: argparse.Namespace) -> int:
    """`joinery api`."""
    from entrypoints.api.server import serve  # noqa: PLC0415  only what a process needs is imported

    port = options.operators_port
    return await _serving("api", serve, {} if port is None else {"JOINERY_OPERATORS_PORT": str(port)})


async def worker(options: argparse.Namespace) -> int:
    """`joinery worker`."""
    duties = frozenset(options.duties or ("runs", "webhooks"))
    from entrypoints.worker.service import run_worker  # noqa: PLC0415  only what a process needs is imported

    return await _serving(
        "worker" if "runs" in duties else "webhooks", partial(run_worker, duties=duties), roles=sorted(duties)
    )


async def scheduler(options: argparse.Namespace) -> int:
    """`joinery scheduler`."""
    del options
    from entrypoints.scheduler.service import run_scheduler  # noqa: PLC0415  only what a process needs is imported

    return await _serving("scheduler", run_scheduler, roles=["scheduler"])


async def mail(options: argparse.Namespace) -> int:
    """`joinery mail`."""
    del options
    from entrypoints.mail.service import run_mail  # noqa: PLC0415  only what a process needs is imported
    from entrypoints.mail.settings import mail_settings  # noqa: PLC0415  the same

    return await _serving("mail", partial(run_mail, mail=mail_settings()), roles=["mail"])


async def migrate(options: argparse.Namespace) -> int:
    """`joinery migrate`."""
    url = settings.owner_url(environment(options))
    try:
        names = await (migrations.list_pending if options.plan else migrations.migrate)(url)
        later = (await migrations.read_compatibility(url)).unknown()
    except migrations.MigrationError as error:
        raise CommandError(str(error)) from error
    if options.json:
        print(json.dumps({"pending" if options.plan else "applied": names, "later": later}))
    elif names:
        print(f"{'Pending: ' if options.plan else 'Applied '}{', '.join(names)}.")
    else:
        newer = f" It has the schema of a later, compatible release ({later[-1]})." if later else ""
        print(f"The database is up to date.{newer}")
    return 0


async def openapi(options: argparse.Namespace) -> int:
    """`joinery openapi`."""
    del options
    from entrypoints.areas.registry import AREAS  # noqa: PLC0415
    from entrypoints.operations.openapi import document  # noqa: PLC0415  the table is only needed here
    from entrypoints.operations.table import Table  # noqa: PLC0415

    base = os.environ.get("JOINERY_BASE_URL", "http://127.0.0.1:8080").rstrip("/")
    docs = os.environ.get("JOINERY_DOCS_URL", base).rstrip("/")
    print(json.dumps(document(Table(AREAS), base, docs), indent=2))
    return 0
