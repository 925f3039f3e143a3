"""Settings of the mail listener: variables `JOINERY_MAIL_…`, and the certificate for STARTTLS."""

import ipaddress
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from entrypoints.errors import SettingsError
from entrypoints.http.addresses import Network
from entrypoints.settings import read_integer, resolve_file_settings


@dataclass(frozen=True, slots=True)
class MailSettings:
    """Settings of the mail listener.

    Attributes:
        host: The IP address or host name to listen on.
        port: The port to listen on.
        hostname: The server's name in replies; None for JOINERY_MAIL_DOMAIN or, if that is not set, the machine's name.
        certificate: File with the certificate chain for STARTTLS; None disables STARTTLS.
        key: File with the certificate's private key; None if `certificate` is None.
        max_connections: Maximum number of connections.
        max_connections_per_address: Maximum number of connections per IP address.
        messages_per_minute: Messages per minute that one inbound address may receive.
        relays: Networks of the operator's mail servers, which may report the IP address of a message's original client.
        resolver: Name server for sender checks, instead of the system's.
    """

    host: str = "127.0.0.1"
    port: int = 2525
    hostname: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    max_connections: int = 100
    max_connections_per_address: int = 20
    messages_per_minute: int = 600
    relays: tuple[Network, ...] = ()
    resolver: str | None = None


def read_mail_settings(env: Mapping[str, str] | None = None) -> MailSettings:
    """Read the settings of the mail listener from environment variables. Raises SettingsError for an invalid value."""
    env = resolve_file_settings(os.environ if env is None else env)
    certificate, key = env.get("JOINERY_MAIL_TLS_CERTIFICATE"), env.get("JOINERY_MAIL_TLS_KEY")
    if bool(certificate) != bool(key):
        raise SettingsError("JOINERY_MAIL_TLS_CERTIFICATE and JOINERY_MAIL_TLS_KEY must both be set; one is missing.")
    return MailSettings(
        host=env.get("JOINERY_MAIL_HOST") or "127.0.0.1",
        port=read_integer(env, "JOINERY_MAIL_PORT", 2525),
        hostname=env.get("JOINERY_MAIL_HOSTNAME") or None,
        certificate=Path(certificate) if certificate else None,
        key=Path(key) if key else None,
        max_connections=_read_positive_integer(env, "JOINERY_MAIL_CONNECTIONS", 100),
        max_connections_per_address=_read_positive_integer(env, "JOINERY_MAIL_CONNECTIONS_EACH", 20),
        messages_per_minute=_read_positive_integer(env, "JOINERY_MAIL_EACH_MINUTE", 600),
        relays=_read_networks(env, "JOINERY_MAIL_RELAYS"),
        resolver=_read_resolver(env, "JOINERY_MAIL_RESOLVER"),
    )


def _read_positive_integer(env: Mapping[str, str], name: str, default: int) -> int:
    number = read_integer(env, name, default)
    if number < 1:
        raise SettingsError(f"{name} must be at least 1.")
    return number


def _read_networks(env: Mapping[str, str], name: str) -> tuple[Network, ...]:
    blocks = [block.strip() for block in env.get(name, "").split(",") if block.strip()]
    try:
        return tuple(ipaddress.ip_network(block) for block in blocks)
    except ValueError as error:
        raise SettingsError(f"{name} must be a comma-separated list of addresses or networks: {error}.") from error


def _read_resolver(env: Mapping[str, str], name: str) -> str | None:
    """Return the setting `name`, the address of a name server; None if it is not set.

    The formats are `address`, `address:port` and `[address]:port`. Raises SettingsError for another format.
    """
    text = env.get(name, "").strip()
    if not text:
        return None
    host, _, port = text[1:].partition("]") if text.startswith("[") else text.partition(":")
    try:
        ipaddress.ip_address(host)
        number = int(port.removeprefix(":") or 53)
    except ValueError:
        raise SettingsError(f"{name} must be an IP address, optionally with a port, not {text!r}.") from None
    if not 0 < number < 65536:
        raise SettingsError(f"{name} has an invalid port: {number}. Use a port from 1 to 65535.")
    return text


@dataclass(slots=True)
class Certificate:
    """Certificate chain and private key in files, and the TLS context that uses them."""

    chain: Path
    key: Path
    context: ssl.SSLContext
    _modified_at: tuple[int, int]

    @classmethod
    def load(cls, chain: Path, key: Path) -> "Certificate":
        """Load a certificate. Raises SettingsError if the files are unreadable or do not match."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            modified_at = _read_modification_times(chain, key)
            context.load_cert_chain(chain, key)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"JOINERY_MAIL_TLS_CERTIFICATE and JOINERY_MAIL_TLS_KEY cannot be used: {error}."
            ) from error
        return cls(chain, key, context, modified_at)

    def reload_if_changed(self) -> bool:
        """Reload the files if they have changed; return whether they have. Raises OSError or SSLError."""
        modified_at = _read_modification_times(self.chain, self.key)
        if modified_at == self._modified_at:
            return False
        self.context.load_cert_chain(self.chain, self.key)
        self._modified_at = modified_at
        return True


def _read_modification_times(chain: Path, key: Path) -> tuple[int, int]:
    return chain.stat().st_mtime_ns, key.stat().st_mtime_ns
