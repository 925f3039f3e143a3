"""`joinery up`: everything on embedded parts, with the demo when asked for."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from adapters.postgres import migrate as migrations
from entrypoints.settings import read_file_settings
from entrypoints.up.errors import UpError
from entrypoints.up.supervisor import UpOptions, default_data_dir
from entrypoints.up.supervisor import run as run_up


async def up(options: argparse.Namespace) -> int:
    """Run until told to stop."""
    data_dir: Path = options.data_dir or default_data_dir()
    port = options.port if options.port is not None else int(os.environ.get("JOINERY_PORT") or 8080)
    environment = read_file_settings(os.environ)
    if options.operators_port is not None:
        environment["JOINERY_OPERATORS_PORT"] = str(options.operators_port)
    on_ready = None
    if options.demo:
        from entrypoints.demo.demonstration import demonstrate, prepare_environment  # noqa: PLC0415  the demo is not needed otherwise

        environment |= prepare_environment(data_dir)
        on_ready = demonstrate
    return await run_up(
        UpOptions(data_dir, port, demo=options.demo, prepare=_prepare, on_ready=on_ready, environment=environment)
    )


async def _prepare(env: Mapping[str, str]) -> None:
    try:
        await migrations.migrate(env["JOINERY_DATABASE_URL"])
    except migrations.MigrationError as error:
        raise UpError(str(error)) from error
