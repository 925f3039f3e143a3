"""Hook by which built-in and third-party plugins provide connectors."""

import pluggy

from .spec import ConnectorSpec

PROJECT = "joinery"
ENTRY_POINT_GROUP = "joinery.connectors"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def joinery_connectors() -> list[ConnectorSpec]:  # type: ignore[empty-body]
    """Return the connectors of this plugin.

    The hook is synchronous, quick and without side effects; it opens no connector.
    """
