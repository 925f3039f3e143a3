"""The mail listener, which receives messages for the inbound addresses of sources until it is stopped.

It creates the adapters for MIME and sender checks, which no other process imports.
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
from domain.mail.ports import InboundAddresses, MessageParser, SenderChecks
from domain.mail.usecases.attachments import AttachmentStaging
from domain.mail.usecases.intake import MessageIntake
from entrypoints.dependencies import Dependencies
from entrypoints.errors import SettingsError
from entrypoints.factories import create_parser_processes
from entrypoints.mail.peers import ConnectionLimits
from entrypoints.mail.session import MailServerState, MailSession
from entrypoints.mail.settings import Certificate, MailSettings
from entrypoints.settings import Settings
from entrypoints.stop_signals import catch_stop_signals
from ports.limits import RateLimits
from ports.parsing import ParserRunner
from ports.unit_of_work import UnitOfWork

LOG = logging.getLogger("joinery.mail")
MAX_CONCURRENT_MESSAGES = 8
"""Maximum number of messages that are processed at a time; others wait in memory."""
MAX_CONCURRENT_MESSAGES_PER_ORGANISATION = 2
"""Maximum number of messages of one organisation that are processed at a time.

Sender checks wait for name servers of the sender, which may not respond.
"""
THREAD_COUNT = 4 * MAX_CONCURRENT_MESSAGES
"""Number of threads of the default executor. A sender check may block a thread while it waits for a name server."""
GRACE_SECONDS = 10.0
"""Seconds after a stop signal in which received messages can still be processed."""
_RENEWAL_CHECK_SECONDS = 60.0


async def run_mail(dependencies: Dependencies, settings: Settings, mail: MailSettings) -> None:
    """Receive mail until the process gets SIGTERM or SIGINT. Raises SettingsError for invalid settings."""
    logging.getLogger("mail.log").setLevel(logging.ERROR)  # the library logs addresses, which are secrets
    await asyncio.to_thread(dependencies[FileWorkspaces].delete_orphans)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREAD_COUNT))
    # Checks of senders mostly wait for name servers, so they have slots of their own.
    verifiers = create_parser_processes(settings, max_processes=MAX_CONCURRENT_MESSAGES)
    sender_checks = SenderVerifier(DnsRecords(mail.resolver), verifiers)
    state = create_state(dependencies, mail, MimeReader(dependencies[ParserRunner]), sender_checks)
    with catch_stop_signals() as stop:
        listener = MailListener(state)
        await listener.start(mail.host, mail.port)
        renewal = asyncio.create_task(listener.watch_certificate(), name="certificate renewal")
        if settings.mail_domain is None:
            LOG.warning("new sources cannot receive mail: JOINERY_MAIL_DOMAIN not set")
        LOG.info("receiving mail for %s on %s:%s", settings.mail_domain or "known addresses", mail.host, mail.port)
        await stop.wait()
        renewal.cancel()
        await listener.stop()
    await verifiers.close()


def create_state(
    dependencies: Dependencies, mail: MailSettings, reader: MessageParser, checks: SenderChecks
) -> MailServerState:
    """Create the state that all SMTP connections share. Raises SettingsError for an invalid certificate."""
    uow, addresses = dependencies[UnitOfWork], dependencies[InboundAddresses]
    intake = MessageIntake(uow, addresses, reader, checks, dependencies[AttachmentStaging])
    certificate = Certificate.load(mail.certificate, mail.key) if mail.certificate and mail.key else None
    return MailServerState(
        intake=intake,
        rate_limits=dependencies[RateLimits],
        connection_limits=ConnectionLimits(mail.max_connections, mail.max_connections_per_address, mail.relays),
        processing_limit=ConcurrencyLimit(MAX_CONCURRENT_MESSAGES, MAX_CONCURRENT_MESSAGES_PER_ORGANISATION),
        hostname=mail.hostname or dependencies[Settings].mail_domain or socket.getfqdn(),
        messages_per_minute=mail.messages_per_minute,
        certificate=certificate,
    )


class MailListener:
    """SMTP server, which creates a MailSession for each connection."""

    def __init__(self, state: MailServerState) -> None:
        self._state = state
        self._sessions: set[MailSession] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Start listening; return the port, which the system chooses if `port` is 0.

        Raises SettingsError if listening fails.
        """
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
        session = MailSession(self._state)
        self._sessions.add(session)
        return session

    async def watch_certificate(self) -> None:
        """Check every minute whether the files of the certificate have changed, and reload them.

        Runs until cancelled.
        """
        certificate = self._state.certificate
        while certificate is not None:
            await asyncio.sleep(_RENEWAL_CHECK_SECONDS)
            try:
                if await asyncio.to_thread(certificate.reload_if_changed):
                    LOG.info("certificate renewed")
            except (OSError, ssl.SSLError) as error:
                LOG.warning("certificate not renewed, previous certificate remains in use: %s", error)

    async def stop(self) -> None:
        """Stop accepting connections, process the messages that were received completely, and close all connections."""
        if self._server is None:
            return
        self._server.close()
        pending_replies = [session.all_replied.wait() for session in self._sessions]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await asyncio.gather(*pending_replies)
        for session in self._sessions:
            if session.transport is not None:
                session.transport.close()
        await asyncio.sleep(0)
