"""Filling the network's logs, as the leading scheduler does all the time."""

from collections.abc import Collection

from domain.changes.ports import NetworkLog
from domain.changes.usecases.network import NetworkRelay
from domain.kernel.tenancy import Tenant
from ports.signals import Signals


async def relay_events(network: NetworkLog, signals: Signals, owners: Collection[Tenant] | None = None) -> None:
    """Copy everything that is published by now, of these owners or of all: others' tests may publish as well."""
    made = NetworkRelay(network, signals)
    await made._load_checkpoints()
    await made.copy_new_events(await network.list_publishers(owners))
