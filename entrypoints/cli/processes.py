"""The commands that run processes, migrate, and print the OpenAPI document."""

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path

from adapters.arq.worker import ArqWorker, quiet
from adapters.postgres import migrate as migrations
from domain.runs.queueing import EXECUTE
from entrypoints import settings
from entrypoints.cli.operators import environment
from entrypoints.container import opened
from entrypoints.demo import demonstrate
from entrypoints.http.server import serve
from entrypoints.logs import configure
from entrypoints.scheduler.service import run_scheduler
from entrypoints.up.supervisor import UpOptions, default_data_dir
from entrypoints.up.supervisor import run as run_up
from entrypoints.worker.drain import Drain
from entrypoints.worker.polling import Polling
from entrypoints.worker.process import stopping_on_signals, through, work


async def up(options: argparse.Namespace) -> int:
    """`joinery up`."""
    data_dir: Path = options.data_dir or default_data_dir()
    port = options.port if options.port is not None else int(os.environ.get("JOINERY_PORT") or 8080)

    async def prepare(env: Mapping[str, str]) -> None:
        await migrations.migrate(env["JOINERY_DATABASE_URL"])

    on_ready = demonstrate if options.demo else None
    return await run_up(UpOptions(data_dir=data_dir, port=port, demo=options.demo, prepare=prepare, on_ready=on_ready))


async def api(options: argparse.Namespace) -> int:
    """`joinery api`."""
    del options
    told = settings.from_environment()
    configure(told.log_level)
    async with opened(told) as container:
        await serve(container, told)
    return 0


async def worker(options: argparse.Namespace) -> int:
    """`joinery worker`."""
    del options
    told = settings.from_environment()
    configure(told.log_level)
    quiet()
    async with opened(told) as container:
        drain = Drain(container.dispatch(), {EXECUTE: container.run_execution()})
        database = Polling(container.dispatch(), container.signals()).serve
        source = through(ArqWorker(told.redis_url).serve, database) if told.redis_url else database
        with stopping_on_signals() as stop:
            await work(source, drain, lanes=told.worker_lanes, stop=stop)
    return 0


async def scheduler(options: argparse.Namespace) -> int:
    """`joinery scheduler`."""
    del options
    told = settings.from_environment()
    configure(told.log_level)
    async with opened(told) as container:
        with stopping_on_signals() as stop:
            await run_scheduler(container, told, stop)
    return 0


async def migrate(options: argparse.Namespace) -> int:
    """`joinery migrate`."""
    url = environment(options).get("JOINERY_DATABASE_URL")
    if not url:
        raise settings.SettingsError("JOINERY_DATABASE_URL is not set: name the PostgreSQL database to migrate.")
    applied = await migrations.migrate(url)
    if options.json:
        print(json.dumps({"applied": applied}))
    else:
        print(f"Applied {', '.join(applied)}." if applied else "The database is up to date.")
    return 0


async def openapi(options: argparse.Namespace) -> int:
    """`joinery openapi`."""
    del options
    from entrypoints.http.openapi import document  # noqa: PLC0415  the table is only needed here
    from entrypoints.http.table import whole  # noqa: PLC0415

    base = os.environ.get("JOINERY_BASE_URL", "http://127.0.0.1:8080")
    print(json.dumps(document(whole(), base), indent=2))
    return 0

