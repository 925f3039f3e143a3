"""Options and output of commands that read or change stored data, and access to that data."""

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cyclopts import Parameter

from domain.kernel.json_values import to_json_value
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgRegistry
from entrypoints import settings
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import begin_operator_change
from entrypoints.up.directory import read_run_file
from ports.unit_of_work import Tx

Mode = Literal["live", "test"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """Options of commands that read or change the data of a service. The methods open the service and print results.

    Attributes:
        data_dir: Data directory of a running `joinery up` (default: the service that the environment configures).
        json: Print one JSON object.
    """

    data_dir: Path | None = None
    json: bool = False

    def read_environment(self) -> dict[str, str]:
        """Return the environment variables of this process and, if `data_dir` is set, of the service that uses it.

        The variables of the service take precedence.
        """
        env = settings.resolve_file_settings(os.environ)
        if self.data_dir is not None:
            env |= {"JOINERY_MIGRATE_DATABASE_URL": "", **read_run_file(self.data_dir)}
        return env

    def read_settings(self) -> settings.Settings:
        """Read the settings of the service. Raises SettingsError."""
        return settings.read_settings(self.read_environment())

    def open_dependencies(self) -> AbstractAsyncContextManager[Dependencies]:
        """Open the dependency container of the service."""
        return open_dependencies(self.read_settings())

    def print_result(self, result: Mapping[str, Any], *lines: str) -> int:
        """Print `result` with --json, else `lines`; return the exit code 0."""
        print(json.dumps(result) if self.json else "\n".join(lines))
        return 0


DEFAULT_OPTIONS = CommandOptions()
"""Options of a command that is run without options."""


def select_attributes(value: object, *names: str) -> dict[str, Any]:
    """Return the named attributes of an object as a dict of JSON values, by attribute name."""
    return {name: to_json_value(getattr(value, name)) for name in names}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OrganisationOptions(CommandOptions):
    """Options of commands that read or change the data of one organisation. The methods open the organisation.

    Attributes:
        org: ID of the organisation, or its name if that is unique.
    """

    org: str

    @asynccontextmanager
    async def open_organisation(self) -> AsyncIterator[tuple[Dependencies, Organisation]]:
        """Open the dependency container of the service; yield the container and the organisation."""
        async with self.open_dependencies() as dependencies:
            yield dependencies, await find_organisation(dependencies, self.org)

    @asynccontextmanager
    async def begin_change(
        self, operation: str, mode: Mode = "live"
    ) -> AsyncIterator[tuple[Dependencies, Organisation, Tx]]:
        """Begin a change of the organisation by the operator; yield the dependency container, the organisation and the transaction.

        Args:
            operation: The name of the operation in the audit log, such as `keys.create`.
            mode: The mode whose data is changed.
        """
        async with (
            self.open_organisation() as (dependencies, organisation),
            begin_operator_change(dependencies, organisation, operation, livemode=mode == "live") as tx,
        ):
            yield dependencies, organisation, tx


async def find_organisation(dependencies: Dependencies, id_or_name: str) -> Organisation:
    """Return the organisation with the ID or unique name.

    Raises:
        CommandError: The organisation does not exist, or several have the name.
    """
    organisation: Organisation | None = await dependencies[OrgRegistry].find(id_or_name)
    if organisation is None:
        ids = [row.id for row in await dependencies[OrgRegistry].list_by_name(id_or_name)] if id_or_name else []
        if ids:
            raise CommandError(f"Several organisations are named {id_or_name!r}. Use an ID: {', '.join(ids)}.")
        raise CommandError(f"There is no organisation {id_or_name!r}. List them with `joinery org list`.")
    return organisation
