"""Use cases of sources: create, change, store and delete credentials, test."""

import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.audit.resources import ResourceService
from domain.ingestion.model import FeedSettings
from domain.ingestion.ports import DEFAULTS, ConnectorInfo, Connectors, FeedReaders, Job
from domain.jobs.ports import JobStore
from domain.kernel.closeness import Closeness, listed
from domain.kernel.errors import Conflict, InvalidRequest, UndoUnavailable, Unprocessable
from domain.kernel.resource import changed
from domain.orgs.ports import OrgStore
from domain.secrets.ports import Vault
from domain.sources.connecting import PUSH, default_connector, missing_settings, refuse_addresses, refuse_push_settings
from domain.sources.model import (
    AUDITED,
    FETCHED_KINDS,
    Schedule,
    Source,
    SourceFault,
    SourceStatus,
)
from domain.sources.ports import SourceStore
from domain.sources.queueing import ranking
from domain.sources.schedules import faults, planned
from domain.sources.testing import Failure, SourceTest
from domain.sources.usecases.quota import METER, refuse_more
from domain.sources.usecases.signing import opened_credentials
from domain.sources.usecases.trial import Trial
from domain.usage.ports import UsageMeters
from ports.schemas import Schemas
from ports.unit_of_work import Tx
from ports.workspaces import Workspaces

_LOCAL_PART = "abcdefghijkmnpqrstuvwxyz23456789"
"""Letters and digits that are not confused when an address is read aloud."""

_FORGOTTEN = "The stored credentials are forgotten: they were given for another address or connector. Store them again."


FindsHandedIn = Callable[[Tx, Source], Awaitable[Callable[[], AsyncIterator[bytes]] | None]]


@dataclass(frozen=True)
class SourceService(ResourceService[Source]):
    """Sources of a tenant. `mail_domain` is that of inbound addresses (None: no mail); `allowed_hosts` (`host`, `host:port`) may be private."""

    kind: ClassVar = Source
    prefix: ClassVar = "src"
    audited: ClassVar = AUDITED
    connectors: Connectors
    vault: Vault
    schemas: Schemas
    readers: FeedReaders
    workspaces: Workspaces
    mail_domain: str | None
    allowed_hosts: frozenset[str] = frozenset()
    handed_in: FindsHandedIn | None = None
    """Finder of the latest data that was uploaded or sent to a source that is not pulled."""
    settings_of: Callable[[Source], FeedSettings] = lambda _: DEFAULTS

    def _store(self, tx: Tx) -> SourceStore:
        return tx[SourceStore]

    async def create(self, tx: Tx, new: Mapping[str, Any]) -> Source:
        """Connect a source.

        Raises InvalidRequest for missing, unknown or invalid settings and for an unknown connector; Unprocessable for a
        connector that does not support the kind and for forbidden addresses; QuotaExceeded if the plan includes no more.
        """
        source = await super().create(tx, new)
        await tx[UsageMeters].count(METER, 0, source.id)  # triggers the check of thresholds
        return source

    async def _with_defaults(self, tx: Tx, new: Mapping[str, Any]) -> Mapping[str, Any]:
        kind, config = new["kind"], _plain(new.get("config", {}))
        connector = new.get("connector") or default_connector(kind, config)
        self._checked(
            kind, connector, config, new.get("schedule", Schedule())
        )  # an invalid source is rejected before the quota is read
        org = await tx[OrgStore].own()
        await refuse_more(tx, org.plan)
        if new.get("first_party") and org.kind != "vendor":
            detail = "Only a vendor's own source is first-party; leave the field out."
            raise Unprocessable.of("first_party", "invalid_value", detail)
        return {
            "first_party": org.kind == "vendor",
            **new,
            "connector": connector,
            "config": config,
            "catalogue": org.catalogue(tx.tenant.livemode),
            "inbound_address": self._address() if "inbound" in config else None,
        }

    def _derive(self, before: Source, changes: dict[str, Any]) -> Mapping[str, Any]:
        derived = dict(changes)
        if "config" in changes:
            config = derived["config"] = _plain(changes["config"])
            derived["inbound_address"] = (before.inbound_address or self._address()) if "inbound" in config else None
        if "status" in changes:
            derived |= _status_change(before, changes["status"])
        return derived

    async def _complete(self, tx: Tx, row: Source, names: Collection[str]) -> Source:
        info = None if row.connector == PUSH else self.connectors.info(row.connector)
        if {"connector", "config", "schedule"} & set(names):
            self._checked(row.kind, row.connector, row.config, row.schedule)
        return replace(row, **_pulls(row, info, tx.now)) if {"schedule", "status"} & set(names) else row

    async def _save(self, tx: Tx, before: Source, after: Source) -> Source:
        forgotten = None
        if before.has_credentials and self._destination(before) != self._destination(after):
            forgotten = await self._opened(tx, before)
            await tx[SourceStore].seal(before.id, None)
            tx.recorded.warnings.append(_FORGOTTEN)
            after = replace(after, has_credentials=False)
            if (before.schedule, before.status) != (after.schedule, after.status):
                after = replace(after, **_pulls(after, self.connectors.info(after.connector), tx.now))
        await tx[SourceStore].save(after)
        await self._keep(tx, await tx[AuditLog].add(AUDITED.updated(before, after)), forgotten)
        if (before.first_party, before.licence_basis) != (after.first_party, after.licence_basis):
            await tx[JobStore].add(ranking(tx.tenant, before))
        return after

    async def _revert(self, tx: Tx, id: str, changes: Mapping[str, Any], exact: Mapping[str, Any], entry: str) -> None:
        """Restore settings, status and inbound address, and the stored former credentials."""
        others = {name: value for name, value in exact.items() if name != "has_credentials"}
        if changes or others:
            await self.update(tx, id, changes, exact=others)
        if exact.get("has_credentials"):
            await self.put_back_credentials(tx, id, entry)
        elif "has_credentials" in exact:
            await self.delete_credentials(tx, id)

    async def rotate_address(self, tx: Tx, id: str) -> Source:
        """Replace the source's inbound address; the old one is rejected from the commit on.

        Raises NotFound, Unprocessable for a source without config.inbound.
        """
        before = await self.get(tx, id, lock=True)
        if before.inbound_address is None:
            raise Unprocessable(_NO_MAIL)
        after = changed(before, tx.now, inbound_address=self._address())
        await tx[SourceStore].save(after, expected_version=before.version)
        await tx[AuditLog].add(AUDITED.updated(before, after))
        return after

    async def put_credentials(self, tx: Tx, id: str, credentials: Mapping[str, Any]) -> Source:
        """Seal the source's credentials, replacing any existing ones.

        Raises NotFound; Unprocessable if its connector uses none; InvalidRequest if they do not match its schema.
        """
        before = await self.get(tx, id, lock=True)
        info = self.connectors.info(before.connector)
        if info is None or info.credentials_schema is None:
            raise Unprocessable(
                f"The connector {before.connector} takes no credentials: what it reads needs no sign-in."
            )
        wrong = self.schemas.faults(info.credentials_schema, credentials, "credentials")
        if wrong:
            detail = f"The credentials are not what the connector {before.connector} asks for; errors[] says what is."
            raise InvalidRequest(detail, fields=wrong)
        after = changed(before, tx.now, has_credentials=True)
        if not before.has_credentials and before.next_pull is None:
            after = replace(after, **_pulls(after, info, tx.now))
        replaced = await self._opened(tx, before)
        await tx[SourceStore].seal(id, self.vault.seal(_plain(credentials), id, info.destination(before.config)))
        await tx[SourceStore].save(after, expected_version=before.version)
        await self._keep(tx, await tx[AuditLog].add(_credentials_change(before, replaced=True)), replaced)
        return after

    async def put_back_credentials(self, tx: Tx, id: str, entry: str) -> Source:
        """Restore the credentials that were replaced or deleted with the audit entry.

        Raises NotFound; UndoUnavailable if they are no longer kept, or belong to another address or connector; and the
        errors of storing them.
        """
        sealed, source = await tx[AuditLog].kept(entry), await self.get(tx, id, lock=True)
        try:
            kept = self.vault.open(sealed, entry) if sealed else None
        except ValueError:
            kept = None
        if kept is None:
            raise UndoUnavailable("The former credentials are kept no longer; store them again.")
        if kept["destination"] != self._destination(source):
            raise UndoUnavailable(
                "The former credentials were given for another address or connector; store them again."
            )
        return await self.put_credentials(tx, id, kept["credentials"])

    async def _opened(self, tx: Tx, source: Source) -> dict[str, Any] | None:
        """Return the source's credentials with their destination, to be stored for undoing, or None if they cannot be read."""
        sealed, destination = await tx[SourceStore].sealed(source.id), self._destination(source)
        if sealed is None or destination is None:
            return None
        try:
            opened = self.vault.open(sealed, source.id, destination)
        except ValueError:
            return None
        return {"credentials": dict(opened), "destination": destination}

    async def _keep(self, tx: Tx, entry: str, opened: Mapping[str, Any] | None) -> None:
        if opened is not None:
            await tx[AuditLog].keep(entry, self.vault.seal(opened, entry))

    async def delete_credentials(self, tx: Tx, id: str) -> Source:
        """Delete the source's credentials, if there are any. Raises NotFound."""
        before = await self.get(tx, id, lock=True)
        if not before.has_credentials:
            return before
        after, forgotten = changed(before, tx.now, has_credentials=False), await self._opened(tx, before)
        await tx[SourceStore].seal(id, None)
        await tx[SourceStore].save(after, expected_version=before.version)
        await self._keep(tx, await tx[AuditLog].add(_credentials_change(before, replaced=False)), forgotten)
        return after

    async def test(self, tx: Tx, id: str) -> Trial | SourceTest:
        """Return a test to run after the transaction, or its result if it failed already. A dry run does not call the source.

        For kinds that are not pulled, the latest uploaded or sent data is read. Raises NotFound; Unprocessable if there is none.
        """
        source = await self.get(tx, id)
        info = self.connectors.info(source.connector)
        if source.kind not in FETCHED_KINDS and self.handed_in is not None:
            return await self._trial_of_handed_in(tx, source, self.handed_in)
        if source.kind not in FETCHED_KINDS or info is None or not info.fetches:
            raise Unprocessable(
                f"A source of kind {source.kind} is not pulled, so there is nothing to reach; hand something in first, then test."
            )
        if tx.dry:
            tx.recorded.warnings.append("A dry run does not call the source.")
            return _failed("dry_run", "A dry run does not call the source.")
        try:
            credentials = await opened_credentials(tx, self.vault, self.connectors, source)
        except ValueError:
            return _failed(
                SourceFault.CREDENTIALS_REFUSED, "The stored credentials cannot be opened; store them again."
            )
        job = Job(source.config, credentials, "catalogue", caller=tx.tenant.org)
        return self._trial(source, job)

    def _trial(
        self, source: Source, job: Job, read: Callable[[], AsyncIterator[bytes]] | None = None, *, pushed: bool = False
    ) -> Trial:
        settings = self.settings_of(source)
        return Trial(self.connectors, self.readers, self.workspaces, source.connector, job, settings, read, pushed)

    async def _trial_of_handed_in(self, tx: Tx, source: Source, find: FindsHandedIn) -> Trial:
        read = await find(tx, source)
        if read is None:
            raise Unprocessable(
                f"A source of kind {source.kind} is not pulled, and nothing was handed in yet; hand something in first, then test."
            )
        return self._trial(source, Job(source.config, None, "catalogue"), read, pushed=source.kind == "push")

    def _destination(self, source: Source) -> str | None:
        """Return the destination of its credentials; None if the connector is not loaded, which sends nothing."""
        info = self.connectors.info(source.connector)
        return info.destination(source.config) if info else None

    def _checked(
        self, kind: str, connector: str, config: Mapping[str, Any], schedule: Schedule
    ) -> ConnectorInfo | None:
        """Validate kind, settings and schedule, and return the connector's declaration (None for pushed sources)."""
        if wrong := (*missing_settings(kind, config), *faults(schedule)):
            raise InvalidRequest(
                "The source's settings are not complete or not in bounds; errors[] names each.", fields=wrong
            )
        info = self._connector(kind, connector)
        if info is None:
            refuse_push_settings(config)
        elif wrong := self.schemas.faults(info.config_schema, config, "config"):
            raise InvalidRequest(
                f"The settings are not what the connector {connector} takes; errors[] names each.", fields=wrong
            )
        refuse_addresses(config, self.allowed_hosts)
        _refuse_schedule(kind, info, schedule)
        return info

    def _connector(self, kind: str, name: str) -> ConnectorInfo | None:
        if kind == "push" and name == PUSH:
            return None
        info = self.connectors.info(name)
        if info is None and name != PUSH:
            known = [one.name for one in self.connectors.infos() if kind in one.kinds]
            named = Closeness().listed(name, known) or "none"
            detail = f"There is no such connector. For kind {kind} you can use: {named}. Without this field the service chooses one."
            raise InvalidRequest.of("connector", "invalid_value", detail)
        if info is None or kind not in info.kinds:
            fitting = listed(sorted(info.kinds)) if info else PUSH
            detail = f"The connector {name} reads sources of kind {fitting}, not of kind {kind}."
            raise Unprocessable.of("connector", "invalid_value", detail)
        return info

    def _address(self) -> str:
        if self.mail_domain is None:
            raise Unprocessable.of("config.inbound", "invalid_value", _MAIL_IS_OFF)
        local = "".join(secrets.choice(_LOCAL_PART) for _ in range(20))
        return f"{local}@{self.mail_domain}"


_MAIL_IS_OFF = (
    "This service takes no mail, for its operator has not set JOINERY_MAIL_DOMAIN. Leave config.inbound out and use a source of kind "
    "file, url or push."
)
_NO_MAIL = "The source takes no mail: set config.inbound with its senders first."


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value as JSON types: exact decimals become numbers."""
    plain: dict[str, Any] = json.loads(json.dumps(value, default=float))
    return plain


def _failed(code: str, message: str) -> SourceTest:
    return SourceTest(ok=False, duration_ms=0, failure=Failure(code, message))


def _status_change(before: Source, status: SourceStatus) -> dict[str, Any]:
    if before.status == SourceStatus.DISABLED:
        raise Conflict("The service has disabled this source, so its status cannot be changed; ask the operator.")
    return (
        {"status": status, "status_reason": None, "failures": 0}
        if status == SourceStatus.ACTIVE
        else {"status": status}
    )


def _refuse_schedule(kind: str, info: ConnectorInfo | None, schedule: Schedule) -> None:
    if schedule.interval_minutes is None and schedule.stock_interval_minutes is None:
        return
    if kind not in FETCHED_KINDS or info is None or not info.fetches:
        detail = f"A source of kind {kind} is not pulled, so it takes no schedule; leave it out."
        raise Unprocessable.of("schedule", "invalid_value", detail)
    if schedule.stock_interval_minutes is not None and "stock" not in info.streams:
        detail = f"The connector {info.name} reads stock with the rest, not apart; use interval_minutes alone."
        raise Unprocessable.of("schedule.stock_interval_minutes", "invalid_value", detail)


def _pulls(source: Source, info: ConnectorInfo | None, now: datetime) -> dict[str, Any]:
    """Return the next pulls; a source without required credentials is not scheduled."""
    waits = source.kind == "api" and info is not None and info.credentials_schema is not None
    if waits and not source.has_credentials:
        return {"next_pull": None, "next_stock_pull": None}
    return planned(source, now)


def _credentials_change(before: Source, *, replaced: bool) -> Change:
    """Return the audited change that credentials were set or deleted, without their values."""
    had = {"has_credentials": before.has_credentials}
    return Change("source", before.id, "update", had, {"has_credentials": replaced})
