"""SFTP server for tests, by asyncssh, in a folder."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

USER, PASSWORD = "joinery", "wood & glue"


class _Authentication(asyncssh.SSHServer):
    """Accepts one user with a password or one public key."""

    def __init__(self, server: "SftpServer") -> None:
        self._server = server

    def begin_auth(self, username: str) -> bool:
        self._server.users.append(username)
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self._server.passwords.append(password)
        return (username, password) == (USER, PASSWORD)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == USER and key == self._server.client_key.convert_to_public()


@dataclass
class SftpServer:
    """Running server, and what it received.

    Attributes:
        seen: Names of the visible files after each write.
        broken_after: Bytes of a file after which the connection is closed; None for never.
    """

    folder: Path
    port: int = 0
    host_key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    client_key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    supports_posix_rename: bool = True
    broken_after: int | None = None
    users: list[str] = field(default_factory=list)
    passwords: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    @property
    def files(self) -> dict[str, bytes]:
        """The contents of all files by name."""
        return {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}


def _create_files(server: SftpServer) -> type[asyncssh.SFTPServer]:
    class Files(asyncssh.SFTPServer):
        def __init__(self, channel: Any) -> None:
            super().__init__(channel, chroot=str(server.folder).encode())
            self._channel = channel

        def write(self, file_obj: Any, offset: int, data: bytes) -> int:
            written = super().write(file_obj, offset, data)
            server.seen |= {path.name for path in server.folder.rglob("*") if path.is_file()}
            if server.broken_after is not None and offset + len(data) >= server.broken_after:
                self._channel.get_connection().abort()
            return written

        def posix_rename(self, oldpath: bytes, newpath: bytes) -> Any:
            if not server.supports_posix_rename:
                raise asyncssh.SFTPOpUnsupported("not supported")
            return super().posix_rename(oldpath, newpath)

    return Files


@asynccontextmanager
async def run_sftp_server(folder: Path, host: str = "127.0.0.1") -> AsyncIterator[SftpServer]:
    """Run a server on a free port of this machine."""
    server = SftpServer(folder)
    listener = await asyncssh.create_server(
        lambda: _Authentication(server),
        host,
        0,
        server_host_keys=[server.host_key],
        sftp_factory=_create_files(server),
    )
    server.port = listener.get_port()
    try:
        yield server
    finally:
        listener.close()
        await asyncio.shield(listener.wait_closed())


@contextmanager
def run_sftp_server_in_thread(folder: Path, host: str) -> Iterator[SftpServer]:
    """Run a server on a loop of its own, for tests without one."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = run_sftp_server(folder, host)
    try:
        yield asyncio.run_coroutine_threadsafe(running.__aenter__(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(running.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
