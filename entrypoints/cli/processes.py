"""The commands that run one process, migrate, and print the OpenAPI document."""

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from adapters.postgres import migrate as migrations
from entrypoints import settings
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import environment
from entrypoints.container import Container, opened
from entrypoints.logs import configure


async def _serving(
    process: str, run: Callable[[Container, settings.Settings], Awaitable[None]], given: Mapping[str, str] | None = None
) -> int:
    configured = settings.from_environment({**os.environ, **given} if given else None)
    configure(configured.log_level)
    async with opened(configured, process) as container:
        watching = asyncio.create_task(container.keyring().watch(), name="watching the key ring")
        try:
            await run(container, configured)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    return 0


async def api(options: argparse.Namespace) -> int:
    """`joinery api`."""
    from entrypoints.http.server import serve  # noqa: PLC0415  only what a process needs is imported

    port = options.operators_port
    return await _serving("api", serve, {} if port is None else {"JOINERY_OPERATORS_PORT": str(port)})


async def worker(options: argparse.Namespace) -> int:
    """`joinery worker`."""
    duties = frozenset(options.duties or ("runs", "webhooks"))
    from entrypoints.worker.service import run_worker  # noqa: PLC0415  only what a process needs is imported

    return await _serving("worker" if "runs" in duties else "webhooks", partial(run_worker, duties=duties))


async def scheduler(options: argparse.Namespace) -> int:
    """`joinery scheduler`."""
    del options
    from entrypoints.scheduler.service import run_scheduler  # noqa: PLC0415  only what a process needs is imported

    return await _serving("scheduler", run_scheduler)


async def mail(options: argparse.Namespace) -> int:
    """`joinery mail`."""
    del options
    from entrypoints.mail.service import run_mail  # noqa: PLC0415  only what a process needs is imported
    from entrypoints.mail.settings import mail_settings  # noqa: PLC0415  the same

    return await _serving("mail", partial(run_mail, mail=mail_settings()))


async def migrate(options: argparse.Namespace) -> int:
    """`joinery migrate`."""
    url = environment(options).get("JOINERY_DATABASE_URL")
    if not url:
        raise settings.SettingsError("JOINERY_DATABASE_URL is not set: name the PostgreSQL database to migrate.")
    try:
        applied = await migrations.migrate(url)
    except migrations.MigrationError as error:
        raise CommandError(str(error)) from error
    if options.json:
        print(json.dumps({"applied": applied}))
    else:
        print(f"Applied {', '.join(applied)}." if applied else "The database is up to date.")
    return 0


async def openapi(options: argparse.Namespace) -> int:
    """`joinery openapi`."""
    del options
    from entrypoints.areas.registry import AREAS  # noqa: PLC0415
    from entrypoints.http.openapi import document  # noqa: PLC0415  the table is only needed here
    from entrypoints.http.table import Table  # noqa: PLC0415

    base = os.environ.get("JOINERY_BASE_URL", "http://127.0.0.1:8080").rstrip("/")
    docs = os.environ.get("JOINERY_DOCS_URL", base).rstrip("/")
    print(json.dumps(document(Table(AREAS), base, docs), indent=2))
    return 0
