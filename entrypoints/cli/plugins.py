"""`joinery plugins list|check`: which connectors load, and why others do not."""

import argparse
import json
import os
from dataclasses import asdict

from adapters.http.client import GuardedClient
from adapters.pluggy.allowlist import AllowlistError
from adapters.pluggy.host import connect
from entrypoints.cli.errors import CommandError
from entrypoints.factories import product_version
from entrypoints.settings import plugins_path


async def plugins(options: argparse.Namespace) -> int:
    """Exit code 0; `check` answers 1 when a listed plugin does not load."""
    path = plugins_path(os.environ)
    async with GuardedClient() as http:
        try:
            host = connect(path, http, product_version=product_version())
        except AllowlistError as error:
            raise CommandError(str(error)) from error
        reports = host.report()
    if options.json:
        print(json.dumps([asdict(report) for report in reports], default=sorted))
    else:
        for report in reports:
            line = f"{report.state:<10} {report.plugin:<28} {', '.join(report.connectors)}"
            print(f"{line} {report.reason or report.note or ''}".rstrip())
    broken = [report for report in reports if report.state == "broken"]
    return 1 if options.what == "check" and broken else 0
