"""What the mail listener does: receives messages for sources' addresses until it is told to stop.

Its own adapters are wired here: no other process imports what checks senders and takes messages apart.
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
"""Messages that are judged at a time; the others wait, read and held."""
TAKING_EACH = 2
"""Messages of one organisation at a time: checks wait for the sender's name servers, which may not answer."""
THREADS = 4 * TAKING
"""Threads of the process; each message being checked may block one that waits for a name server."""
GRACE = 10.0
"""Seconds that messages which have come whole get to be answered when the process is told to stop."""
_RENEW_EVERY = 60.0


async def run_mail(dependencies: Dependencies, settings: Settings, mail: MailSettings) -> None:
    """Receive mail until SIGTERM or SIGINT. Raises SettingsError."""
    logging.getLogger("mail.log").setLevel(logging.ERROR)  # the library's log has the addresses, which are secrets
    await asyncio.to_thread(dependencies[FileWorkspaces].sweep)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    # Checks of senders mostly wait for name servers, so they have slots of their own.
    verifiers = parsers_of(settings, most=TAKING)
    checks = SenderVerifier(DnsRecords(mail.resolver), verifiers)
    desk = desk_of(dependencies, mail, MimeReader(dependencies[ParserRunner]), checks)
    with stopping_on_signals() as stop:
        listener = Listener(desk)
        await listener.start(mail.host, mail.port)
        renewing = asyncio.create_task(listener.renew_certificate(), name="renewing the certificate")
        if settings.mail_domain is None:
            LOG.warning(
                "JOINERY_MAIL_DOMAIN is not set: sources are given no addresses, and only those made before take mail"
            )
        LOG.info("mail for %s is taken on %s:%s", settings.mail_domain or "known addresses", mail.host, mail.port)
        await stop.wait()
        renewing.cancel()
        await listener.stop()
    await verifiers.close()


def desk_of(dependencies: Dependencies, mail: MailSettings, reader: MessageReader, checks: SenderChecks) -> Desk:
    """What the listener's connections share. Raises SettingsError."""
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
    """Takes connections; each is a MailSession."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._sessions: set[MailSession] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; answers the port. Raises SettingsError when that is not possible."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._session, host, port, backlog=256)
        except OSError as error:
            raise SettingsError(
                f"Mail cannot be taken on {host}:{port} (JOINERY_MAIL_HOST, JOINERY_MAIL_PORT): {error.strerror}."
            ) from error
        found: socket.socket = self._server.sockets[0]
        return int(found.getsockname()[1])

    def _session(self) -> MailSession:
        self._sessions = {session for session in self._sessions if session.transport is not None}
        session = MailSession(self._desk)
        self._sessions.add(session)
        return session

    async def renew_certificate(self) -> None:
        """Look every minute whether the certificate was renewed, until cancelled."""
        certificate = self._desk.certificate
        while certificate is not None:
            await asyncio.sleep(_RENEW_EVERY)
            try:
                if await asyncio.to_thread(certificate.renew):
                    LOG.info("the certificate was renewed")
            except (OSError, ssl.SSLError) as error:
                LOG.warning("the certificate could not be renewed, the former one serves on: %s", error)

    async def stop(self) -> None:
        """Take no more; answer the messages that have come whole, and hang up."""
        if self._server is None:
            return
        self._server.close()
        ends = [session.answered.wait() for session in self._sessions]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await asyncio.gather(*ends)
        for session in self._sessions:
            if session.transport is not None:
                session.transport.close()
        await asyncio.sleep(0)
