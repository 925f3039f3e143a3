"""`joinery plugins`: which connectors load, and why others do not."""

import json as jsons
import os
from dataclasses import asdict
from typing import Literal

from adapters.http.client import GuardedClient
from adapters.pluggy.allowlist import AllowlistError
from adapters.pluggy.host import PluggyConnectors, connect
from connectors.sdk.context import HttpClient
from entrypoints.cli.errors import CommandError
from entrypoints.factories import product_version
from entrypoints.settings import plugins_path


def load_connectors(http: HttpClient) -> PluggyConnectors:
    """Load the connectors that the settings allow.

    Raises:
        CommandError: The list of allowed plugins cannot be read.
    """
    try:
        return connect(plugins_path(os.environ), http, product_version=product_version())
    except AllowlistError as error:
        raise CommandError(str(error)) from error


async def plugins(what: Literal["list", "check"], /, *, json: bool = False) -> int:
    """List or check connector plugins; `check` exits with 1 when a listed plugin does not load.

    Args:
        json: print JSON
    """
    async with GuardedClient() as http:
        reports = load_connectors(http).report()
    if json:
        print(jsons.dumps([asdict(report) for report in reports], default=sorted))
    else:
        for report in reports:
            line = f"{report.state:<10} {report.plugin:<28} {', '.join(report.connectors)}"
            print(f"{line} {report.reason or report.note or ''}".rstrip())
    return 1 if what == "check" and any(report.state == "broken" for report in reports) else 0
