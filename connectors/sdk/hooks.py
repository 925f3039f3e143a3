"""Pluggy hook that built-in and third-party plugins implement to provide connectors."""

import pluggy

from .spec import ConnectorSpec

PROJECT = "joinery"
ENTRY_POINT_GROUP = "joinery.connectors"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def joinery_connectors() -> list[ConnectorSpec]:  # type: ignore[empty-body]
    """Return the connectors of the plugin that implements this hook.

    An implementation must be synchronous, quick and without side effects, and must not open a connector.
    """
