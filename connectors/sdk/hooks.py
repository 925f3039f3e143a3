"""The one hook by which connectors are offered, to built-in and third-party plugins alike."""

import pluggy

from .spec import ConnectorSpec

PROJECT = "joinery"
ENTRY_POINT_GROUP = "joinery.connectors"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def joinery_connectors() -> list[ConnectorSpec]:  # type: ignore[empty-body]
    """Describe the connectors of this plugin. Synchronous, quick, and without side effects: nothing is opened yet."""
