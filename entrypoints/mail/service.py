"""The mail listener: receives messages for sources' addresses until stopped.

Its adapters are created here, because no other process imports the verification of senders and the MIME parser.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor

from adapters.dns import DnsRecords
from adapters.files.workspaces import FileWorkspaces
from adapters.mime.reader import MimeReader
from adapters.senders.checks import SenderVerifier
from domain.kernel.concurrency import ConcurrencyLimit
from domain.mail.ports import InboundAddresses, MessageReader, SenderChecks
from domain.mail.usecases.intake import Intake
from domain.mail.usecases.staging import Staging
from entrypoints.dependencies import Dependencies
from entrypoints.errors import SettingsError
from entrypoints.factories import parsers_of
from entrypoints.mail.peers import Peers
from entrypoints.mail.session import Desk, MailSession
from entrypoints.mail.settings import Certificate, MailSettings
from entrypoints.settings import Settings
from entrypoints.stopping import stopping_on_signals
from ports.limits import Limits
from ports.parsing import ParserRunner
from ports.unit_of_work import UnitOfWork

LOG = logging.getLogger("joinery.mail")
TAKING = 8
"""Messages processed at a time; others wait in memory."""
TAKING_EACH = 2
"""Messages of one organisation at a time, because checks wait for the sender's name servers, which may not respond."""
THREADS = 4 * TAKING
"""Threads of the process; each checked message may block one while waiting for a name server."""
GRACE = 10.0
"""Seconds in which complete messages are processed after a stop signal."""
_RENEW_EVERY = 60.0


async def run_mail(dependencies: Dependencies, settings: Settings, mail: MailSettings) -> None:
    """Receive mail until SIGTERM or SIGINT. Raises SettingsError."""
    logging.getLogger("mail.log").setLevel(logging.ERROR)  # the library logs addresses, which are secrets
    await asyncio.to_thread(dependencies[FileWorkspaces].sweep)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    # Checks of senders mostly wait for name servers, so they have slots of their own.
    verifiers = parsers_of(settings, most=TAKING)
    checks = SenderVerifier(DnsRecords(mail.resolver), verifiers)
    desk = desk_of(dependencies, mail, MimeReader(dependencies[ParserRunner]), checks)
    with stopping_on_signals() as stop:
        listener = Listener(desk)
        await listener.start(mail.host, mail.port)
        renewal = asyncio.create_task(listener.renew_certificate(), name="renewing the certificate")
        if settings.mail_domain is None:
            LOG.warning(
                "JOINERY_MAIL_DOMAIN is not set: new sources get no addresses; only existing addresses accept mail"
            )
        LOG.info("receiving mail for %s on %s:%s", settings.mail_domain or "known addresses", mail.host, mail.port)
        await stop.wait()
        renewal.cancel()
        await listener.stop()
    await verifiers.close()


def desk_of(dependencies: Dependencies, mail: MailSettings, reader: MessageReader, checks: SenderChecks) -> Desk:
    """Create the shared state of connections. Raises SettingsError."""
    uow, addresses = dependencies[UnitOfWork], dependencies[InboundAddresses]
    intake = Intake(uow, addresses, reader, checks, dependencies[Staging])
    certificate = Certificate.load(mail.certificate, mail.key) if mail.certificate and mail.key else None
    return Desk(
        intake=intake,
        limits=dependencies[Limits],
        peers=Peers(mail.connections, mail.connections_each, mail.relays),
        taking=ConcurrencyLimit(TAKING, TAKING_EACH),
        hostname=mail.hostname or dependencies[Settings].mail_domain or socket.getfqdn(),
        each_minute=mail.each_minute,
        certificate=certificate,
    )


class Listener:
    """SMTP server; each connection is a MailSession."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._sessions: set[MailSession] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Start listening and return the port. Raises SettingsError if that fails."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._create_session, host, port, backlog=256)
        except OSError as error:
            raise SettingsError(
                f"Cannot listen for mail on {host}:{port} (JOINERY_MAIL_HOST, JOINERY_MAIL_PORT): {error.strerror}."
            ) from error
        server_socket: socket.socket = self._server.sockets[0]
        return int(server_socket.getsockname()[1])

    def _create_session(self) -> MailSession:
        self._sessions = {session for session in self._sessions if session.transport is not None}
        session = MailSession(self._desk)
        self._sessions.add(session)
        return session

    async def renew_certificate(self) -> None:
        """Check every minute whether the certificate was renewed, until cancelled."""
        certificate = self._desk.certificate
        while certificate is not None:
            await asyncio.sleep(_RENEW_EVERY)
            try:
                if await asyncio.to_thread(certificate.renew):
                    LOG.info("certificate renewed")
            except (OSError, ssl.SSLError) as error:
                LOG.warning("certificate not renewed, the previous one stays in use: %s", error)

    async def stop(self) -> None:
        """Stop accepting, complete the received messages, and close the connections."""
        if self._server is None:
            return
        self._server.close()
        pending_replies = [session.answered.wait() for session in self._sessions]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await asyncio.gather(*pending_replies)
        for session in self._sessions:
            if session.transport is not None:
                session.transport.close()
        await asyncio.sleep(0)
