"""Relay of events to the network logs, like by the leading scheduler."""

from collections.abc import Collection

from domain.changes.ports import NetworkLog
from domain.changes.usecases.network import NetworkRelay
from domain.kernel.tenancy import Tenant
from ports.signals import Signals


async def relay_events(network: NetworkLog, signals: Signals, owners: Collection[Tenant] | None = None) -> None:
    """Copy all published events of the owners, by default of all owners including those of other tests."""
    network_relay = NetworkRelay(network, signals)
    await network_relay._load_checkpoints()
    await network_relay.copy_new_events(await network.list_publishers(owners))
