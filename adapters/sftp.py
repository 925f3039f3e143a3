"""Targets of scheduled exports on SFTP servers."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import asyncssh

from domain.exports.ports import DeliveryFailed
from domain.exports.schedules import ExportTarget
from ports.outbound import OutboundFailed, OutboundSockets

_CONNECT_SECONDS = 15
_KEEPALIVE_SECONDS = 15


@dataclass(frozen=True, slots=True)
class SftpTarget:
    """Client of SFTP servers (port FileTarget in domain/exports/ports.py).

    A file is written under a temporary name and renamed, so that readers never see a part of it. Connections are
    accepted only from the server whose key the first test has pinned.
    """

    sockets: OutboundSockets

    async def test(self, target: ExportTarget, credentials: Mapping[str, Any]) -> ExportTarget:
        pinned = target if target.host_key else replace(target, host_key=await self._fetch_host_key(target))
        async with self._open(pinned, credentials) as client:
            path = _join(pinned, f".joinery-test-{secrets.token_hex(8)}")
            async with client.open(path, "wb") as file:
                await file.write(b"test\n")
            await client.remove(path)
        return pinned

    async def send(
        self, target: ExportTarget, credentials: Mapping[str, Any], name: str, size: int, chunks: AsyncIterator[bytes]
    ) -> None:
        temporary_path, path = _join(target, f".{name}.part"), _join(target, name)
        async with self._open(target, credentials) as client:
            async with client.open(temporary_path, "wb") as file:
                async for chunk in chunks:
                    await file.write(chunk)
            written = (await client.stat(temporary_path)).size
            if written != size:
                raise DeliveryFailed(f"The server stored {written} of {size} bytes.")
            await _replace(client, temporary_path, path)

    async def _fetch_host_key(self, target: ExportTarget) -> str:
        """Return the server's public key, without authentication. Raises DeliveryFailed."""
        with _translate_errors():
            async with asyncio.timeout(_CONNECT_SECONDS):
                sock = await self.sockets.connect(target.host or "", target.port or 0)
                key = await asyncssh.get_server_host_key(sock=sock, config=None)
        if key is None:
            raise DeliveryFailed("The server has no host key.", is_final=True)
        return key.export_public_key("openssh").decode().strip()

    @asynccontextmanager
    async def _open(self, target: ExportTarget, credentials: Mapping[str, Any]) -> AsyncIterator[asyncssh.SFTPClient]:
        """Open a session on the server whose key is pinned. Raises DeliveryFailed, also for errors of the context's body."""
        with _translate_errors():
            host_key = asyncssh.import_public_key(target.host_key or "")
            private_key = credentials.get("private_key")
            keys = [asyncssh.import_private_key(private_key)] if private_key else None
            sock = await self.sockets.connect(target.host or "", target.port or 0)
            async with (
                asyncssh.connect(
                    sock=sock,
                    config=None,
                    known_hosts=([host_key], [], []),
                    username=target.user or "",
                    password=credentials.get("password") or None,
                    client_keys=keys,
                    agent_path=None,
                    gss_host=None,
                    login_timeout=_CONNECT_SECONDS,
                    keepalive_interval=_KEEPALIVE_SECONDS,
                ) as connection,
                connection.start_sftp_client() as client,
            ):
                yield client


async def _replace(client: asyncssh.SFTPClient, source: str, path: str) -> None:
    """Rename a file; an existing file of the new name is replaced, at once if the server supports it."""
    try:
        await client.posix_rename(source, path)
    except asyncssh.SFTPOpUnsupported:
        if await client.exists(path):
            await client.remove(path)
        await client.rename(source, path)


def _join(target: ExportTarget, name: str) -> str:
    folder = target.folder or ""
    return f"{folder.rstrip('/')}/{name}" if folder else name


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise DeliveryFailed for errors of the connection and the server, without secrets."""
    try:
        yield
    except asyncssh.HostKeyNotVerifiable as error:
        raise DeliveryFailed(
            "The server's key differs from the pinned one. If the server was replaced, create the schedule again.",
            is_final=True,
        ) from error
    except asyncssh.PermissionDenied as error:
        raise DeliveryFailed("The server refused the user name, password or key.") from error
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise DeliveryFailed("The private key is invalid or has a passphrase.", is_final=True) from error
    except asyncssh.SFTPError as error:
        raise DeliveryFailed(f"The server refused the file: {error.reason[:200]}") from error
    except OutboundFailed as error:
        raise DeliveryFailed(str(error)) from error
    except (asyncssh.Error, OSError, TimeoutError) as error:
        raise DeliveryFailed(f"The connection to the server failed ({type(error).__name__}).") from error
