"""Access of commands to the store, changes as the operator, and output."""

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cyclopts import Parameter

from domain.kernel.plain import plain
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgRegistry
from entrypoints import settings
from entrypoints.container import opened
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import begin
from entrypoints.up.directory import attach
from ports.unit_of_work import Tx

Mode = Literal["live", "test"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Store:
    """Options of commands on stored data.

    Attributes:
        data_dir: the data directory of a running `joinery up`
        json: print one JSON object
    """

    data_dir: Path | None = None
    json: bool = False

    def environment(self) -> dict[str, str]:
        """Return the environment of the service on --data-dir, or else of this process."""
        env = settings.read_file_settings(os.environ)
        if self.data_dir is not None:
            env |= {"JOINERY_MIGRATE_DATABASE_URL": "", **attach(self.data_dir)}
        return env

    def settings(self) -> settings.Settings:
        """Read the settings of that environment."""
        return settings.from_environment(self.environment())

    def open(self) -> AbstractAsyncContextManager[Dependencies]:
        """Open the store."""
        return opened(self.settings())

    def answer(self, answer: Mapping[str, Any], *lines: str) -> int:
        """Print the answer as JSON or as lines; return the exit code 0."""
        print(json.dumps(answer) if self.json else "\n".join(lines))
        return 0


DEFAULT = Store()


def attributes(value: object, *names: str) -> dict[str, Any]:
    """Return attributes of a value by name, in JSON types."""
    return {name: plain(getattr(value, name)) for name in names}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OrganisationStore(Store):
    """Options of commands on one organisation.

    Attributes:
        org: the organisation's ID, or its name if that is unique
    """

    org: str

    @asynccontextmanager
    async def find(self) -> AsyncIterator[tuple[Dependencies, Organisation]]:
        """Open the store and find the organisation."""
        async with self.open() as parts:
            yield parts, await find_organisation(parts, self.org)

    @asynccontextmanager
    async def change(self, operation: str, mode: Mode = "live") -> AsyncIterator[tuple[Dependencies, Organisation, Tx]]:
        """Open the store and change the organisation as the operator, in one unit of work."""
        async with (
            self.find() as (parts, organisation),
            begin(parts, organisation, operation, livemode=mode == "live") as tx,
        ):
            yield parts, organisation, tx


async def find_organisation(parts: Dependencies, id_or_name: str) -> Organisation:
    """Find an organisation by its ID or unique name.

    Raises:
        CommandError: The organisation does not exist, or several have the name.
    """
    organisation: Organisation | None = await parts[OrgRegistry].find(id_or_name)
    if organisation is None:
        ids = [row.id for row in await parts[OrgRegistry].named(id_or_name)] if id_or_name else []
        if ids:
            raise CommandError(f"Several organisations are named {id_or_name!r}. Use an ID: {', '.join(ids)}.")
        raise CommandError(f"There is no organisation {id_or_name!r}. List them with `joinery org list`.")
    return organisation
