"""TCP connections to untrusted hosts, for protocols other than HTTP."""

import asyncio
import socket

from aiohttp.abc import ResolveResult

from adapters.http import errors
from adapters.http.resolver import AddressVetting, Lookup, NameResolver, VettingResolver
from ports.outbound import OutboundFailed

_CONNECT_SECONDS = 10.0


class VettedSockets:
    """TCP connections to public addresses on any port (port OutboundSockets in ports/outbound.py).

    Args:
        allowed_hosts: Private hosts that may be reached (JOINERY_ALLOW_PRIVATE_HOSTS), as `host` or `host:port`.
        lookup: Name resolver other than the system's.
    """

    def __init__(self, allowed_hosts: frozenset[str] = frozenset(), lookup: Lookup | None = None) -> None:
        allowed = frozenset(name.strip().lower() for name in allowed_hosts if name.strip())
        self._vetting = AddressVetting(allowed, ports=None)
        self._resolver = VettingResolver(self._vetting, lookup or NameResolver().lookup)

    async def connect(self, host: str, port: int) -> socket.socket:
        try:
            self._vetting.vet_host(host, port)
            addresses = await self._resolver.resolve(host.strip("[]"), port, socket.AF_UNSPEC)
        except errors.OutboundError as error:
            raise OutboundFailed(str(error)) from None
        except (OSError, UnicodeError):
            raise OutboundFailed("The host name has no address.") from None
        for address in addresses:
            if (connected := await _connect(address)) is not None:
                return connected
        raise OutboundFailed("The connection to the host failed.")


async def _connect(address: ResolveResult) -> socket.socket | None:
    """Connect to an address; return None if this fails."""
    connection = socket.socket(address["family"], socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(connection, (address["host"], address["port"]))
    except (OSError, TimeoutError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection
