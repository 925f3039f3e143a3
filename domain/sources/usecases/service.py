"""Use cases of sources: create, change and test sources, and store and delete credentials."""

import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.audit.resources import ResourceService
from domain.catalogue.licences import UNSHAREABLE_BASES
from domain.catalogue.model import LicenceBasis
from domain.catalogue.ports import HeldLicences
from domain.catalogue.publication import create_refresh_job
from domain.ingestion.model import FeedSettings
from domain.ingestion.ports import DEFAULT_FEED_SETTINGS, ConnectorInfo, Connectors, ConnectorTask, FeedReaderFactory
from domain.jobs.ports import JobStore
from domain.kernel.errors import Conflict, InvalidRequest, UndoUnavailable, Unprocessable
from domain.kernel.resource import with_changes
from domain.kernel.suggestions import WordSuggester, format_list
from domain.orgs.ports import OrgStore
from domain.proposals.staleness import mark_stale
from domain.secrets.ports import Vault
from domain.sources.connector_selection import (
    PUSH_CONNECTOR,
    refuse_forbidden_urls,
    refuse_unknown_push_settings,
    select_default_connector,
    validate_required_settings,
)
from domain.sources.model import (
    AUDITED,
    FETCHED_KINDS,
    NETWORK_CONNECTOR,
    Schedule,
    Source,
    SourceFault,
    SourceStatus,
)
from domain.sources.ports import SourceStore
from domain.sources.precedence_update import new_precedence_update_job
from domain.sources.schedules import plan_pulls, validate_schedule
from domain.sources.source_test import SourceTest, TestFailure
from domain.sources.usecases.credentials import decrypt_credentials
from domain.sources.usecases.quota import METER, refuse_further_source
from domain.sources.usecases.source_tests import SourceTestExecution
from domain.usage.ports import UsageMeters
from ports.schemas import SchemaValidator
from ports.unit_of_work import Tx
from ports.workspaces import Workspaces

_LOCAL_PART_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""Characters of the local part of inbound addresses: letters and digits that people do not easily confuse."""

_CREDENTIALS_DELETED = (
    "The stored credentials were deleted because they were for the previous URL or connector. Enter new credentials."
)
_DEFAULT_SCHEDULE_OF_FOLLOWERS = Schedule(interval_minutes=1440)
"""Schedule of a source that follows a catalogue: changes start further runs, and a daily one confirms that the data is current."""
_NOT_TESTED = "A dry run does not call the source. To test the source, omit Service-Dry-Run."


FindLatestInput = Callable[[Tx, Source], Awaitable[Callable[[], AsyncIterator[bytes]] | None]]
"""Function that finds the newest submitted data of a source, and returns a function that reads it, or None."""


@dataclass(frozen=True)
class SourceService(ResourceService[Source]):
    """Use cases of sources.

    Attributes:
        mail_domain: Domain of inbound addresses; None if the service does not receive mail.
        allowed_hosts: Hosts (`host`, `host:port`) that are permitted although their addresses are private.
        find_latest_input: Finds the newest submitted data of a source, for source tests.
        create_feed_settings: Returns the settings for reading a source's values.
    """

    kind: ClassVar = Source
    prefix: ClassVar = "src"
    audited: ClassVar = AUDITED
    connectors: Connectors
    vault: Vault
    schemas: SchemaValidator
    readers: FeedReaderFactory
    workspaces: Workspaces
    mail_domain: str | None
    allowed_hosts: frozenset[str] = frozenset()
    find_latest_input: FindLatestInput | None = None
    create_feed_settings: Callable[[Source], FeedSettings] = lambda _: DEFAULT_FEED_SETTINGS

    def _store(self, tx: Tx) -> SourceStore:
        return tx[SourceStore]

    async def create(self, tx: Tx, new: Mapping[str, Any]) -> Source:
        """Create a source.

        Raises:
            InvalidRequest: Settings are missing, unknown or invalid, or the connector is unknown.
            Unprocessable: The connector does not support the kind, or an address is not allowed.
            QuotaExceeded: The plan does not include more sources.
        """
        source = await super().create(tx, new)
        await tx[UsageMeters].add_usage(METER, 0, source.id)  # triggers the check of thresholds
        return source

    async def _with_defaults(self, tx: Tx, new: Mapping[str, Any]) -> Mapping[str, Any]:
        kind, config = new["kind"], _to_plain_json(new.get("config", {}))
        connector = new.get("connector") or select_default_connector(kind, config)
        self._validate_settings(kind, connector, config, new.get("schedule", Schedule()))  # before the quota is read
        org = await tx[OrgStore].get_organisation()
        await refuse_further_source(tx, org)
        if new.get("first_party") and not org.is_vendor:
            detail = "Only a vendor's own source can be first-party. Omit first_party."
            raise Unprocessable.for_field("first_party", "invalid_value", detail)
        follows_catalogue = connector == NETWORK_CONNECTOR
        return {
            "first_party": org.is_vendor and not follows_catalogue,
            **({"schedule": _DEFAULT_SCHEDULE_OF_FOLLOWERS} if follows_catalogue else {}),
            **new,
            "connector": connector,
            "config": config,
            "catalogue": org.get_catalogue_id(tx.tenant.livemode),
            "inbound_address": self._create_address() if "inbound" in config else None,
        }

    def _with_derived_fields(self, before: Source, changes: dict[str, Any]) -> Mapping[str, Any]:
        derived = dict(changes)
        if "connector" in changes and NETWORK_CONNECTOR in (before.connector, changes["connector"]):
            detail = "A source cannot start or stop following a catalogue. Create another source."
            raise Unprocessable.for_field("connector", "invalid_value", detail)
        if before.follows_catalogue and changes.get("config", before.config) != before.config:
            detail = "A source cannot follow another catalogue. Create another source."
            raise Unprocessable.for_field("config.catalogue", "invalid_value", detail)
        if "config" in changes:
            config = derived["config"] = _to_plain_json(changes["config"])
            derived["inbound_address"] = (
                (before.inbound_address or self._create_address()) if "inbound" in config else None
            )
        if "status" in changes:
            derived |= _derive_status_fields(before, changes["status"])
        return derived

    async def _validate(self, tx: Tx, row: Source, names: Collection[str]) -> Source:
        info = None if row.connector == PUSH_CONNECTOR else self.connectors.find_connector(row.connector)
        if {"connector", "config", "schedule"} & set(names):
            self._validate_settings(row.kind, row.connector, row.config, row.schedule)
        if row.follows_catalogue:
            _validate_follower(row)
            if "config" in names:
                await _refuse_unreadable_catalogue(tx, row)
        return replace(row, **_plan_next_pulls(row, info, tx.now)) if {"schedule", "status"} & set(names) else row

    async def _save(self, tx: Tx, before: Source, after: Source) -> Source:
        deleted_credentials = None
        if before.has_credentials and self._find_destination(before) != self._find_destination(after):
            deleted_credentials = await self._decrypt_for_undo(tx, before)
            await tx[SourceStore].save_encrypted_credentials(before.id, None)
            tx.recorded.warnings.append(_CREDENTIALS_DELETED)
            after = replace(after, has_credentials=False)
            if (before.schedule, before.status) != (after.schedule, after.status):
                after = replace(
                    after, **_plan_next_pulls(after, self.connectors.find_connector(after.connector), tx.now)
                )
        await tx[SourceStore].save(after)
        await self._store_for_undo(
            tx, await tx[AuditLog].add(AUDITED.describe_update(before, after)), deleted_credentials
        )
        if (before.connector, before.config) != (after.connector, after.config):
            await mark_stale(tx, after.id, "The source's settings have been changed.")
        if (before.first_party, before.licence_basis) != (after.first_party, after.licence_basis):
            await tx[JobStore].add(new_precedence_update_job(tx.tenant, before))
        if (before.licence_basis in UNSHAREABLE_BASES) != (after.licence_basis in UNSHAREABLE_BASES):
            await tx[JobStore].add(create_refresh_job(after.id, tx.tenant))
        return after

    async def _revert(
        self, tx: Tx, id: str, changes: Mapping[str, Any], restored_values: Mapping[str, Any], entry: str
    ) -> None:
        """Restore the field values from before an update, as the base class does, and also the credentials."""
        others = {name: value for name, value in restored_values.items() if name != "has_credentials"}
        if changes or others:
            await self.update(tx, id, changes, restored_values=others)
        if restored_values.get("has_credentials"):
            await self.restore_credentials(tx, id, entry)
        elif "has_credentials" in restored_values:
            await self.delete_credentials(tx, id)

    async def rotate_address(self, tx: Tx, id: str) -> Source:
        """Replace the source's inbound address by a new random one.

        Raises NotFound, and Unprocessable if config.inbound is not set.
        """
        before = await self.get(tx, id, lock=True)
        if before.inbound_address is None:
            raise Unprocessable(_NO_MAIL)
        after = with_changes(before, tx.now, inbound_address=self._create_address())
        await tx[SourceStore].save(after, expected_version=before.version)
        await tx[AuditLog].add(AUDITED.describe_update(before, after))
        return after

    async def store_credentials(self, tx: Tx, id: str, credentials: Mapping[str, Any]) -> Source:
        """Encrypt and store the source's credentials, in place of stored ones.

        Raises:
            NotFound: The source does not exist.
            Unprocessable: The source's connector uses no credentials.
            InvalidRequest: The credentials do not match the connector's schema.
        """
        before = await self.get(tx, id, lock=True)
        info = self.connectors.find_connector(before.connector)
        if info is None or info.credentials_schema is None:
            raise Unprocessable(f"The connector {before.connector} uses no credentials. Do not store any.")
        violations = self.schemas.find_field_errors(info.credentials_schema, credentials, "credentials")
        if violations:
            detail = (
                f"The credentials do not match the schema of the connector {before.connector}. Correct the "
                f"fields in errors[]."
            )
            raise InvalidRequest(detail, fields=violations)
        after = with_changes(before, tx.now, has_credentials=True)
        if not before.has_credentials and before.next_pull is None:
            after = replace(after, **_plan_next_pulls(after, info, tx.now))
        replaced = await self._decrypt_for_undo(tx, before)
        await tx[SourceStore].save_encrypted_credentials(
            id, self.vault.encrypt(_to_plain_json(credentials), id, info.describe_credential_destination(before.config))
        )
        await tx[SourceStore].save(after, expected_version=before.version)
        await self._store_for_undo(
            tx, await tx[AuditLog].add(_create_credentials_change(before, has_credentials=True)), replaced
        )
        return after

    async def restore_credentials(self, tx: Tx, id: str, entry: str) -> Source:
        """Restore the credentials that were replaced or deleted by the change in the audit entry `entry`.

        Raises the same errors as `store_credentials`, and UndoUnavailable if the credentials are no longer stored or
        belong to another address or connector.
        """
        sealed, source = await tx[AuditLog].get_sealed(entry), await self.get(tx, id, lock=True)
        try:
            stored = self.vault.decrypt(sealed, entry) if sealed else None
        except ValueError:
            stored = None
        if stored is None:
            raise UndoUnavailable("The previous credentials are no longer stored. Enter them again.")
        if stored["destination"] != self._find_destination(source):
            raise UndoUnavailable(
                "The stored credentials were for another URL or connector. Enter the current credentials."
            )
        return await self.store_credentials(tx, id, stored["credentials"])

    async def _decrypt_for_undo(self, tx: Tx, source: Source) -> dict[str, Any] | None:
        """Return the source's decrypted credentials and their destination, as `credentials` and `destination`.

        Returns None if no credentials are stored or they cannot be decrypted.
        """
        sealed, destination = (
            await tx[SourceStore].load_encrypted_credentials(source.id),
            self._find_destination(source),
        )
        if sealed is None or destination is None:
            return None
        try:
            opened = self.vault.decrypt(sealed, source.id, destination)
        except ValueError:
            return None
        return {"credentials": dict(opened), "destination": destination}

    async def _store_for_undo(self, tx: Tx, entry: str, opened: Mapping[str, Any] | None) -> None:
        if opened is not None:
            await tx[AuditLog].store_sealed(entry, self.vault.encrypt(opened, entry))

    async def delete_credentials(self, tx: Tx, id: str) -> Source:
        """Delete the source's credentials, if any, and return the source. Raises NotFound."""
        before = await self.get(tx, id, lock=True)
        if not before.has_credentials:
            return before
        after, deleted_credentials = (
            with_changes(before, tx.now, has_credentials=False),
            await self._decrypt_for_undo(tx, before),
        )
        await tx[SourceStore].save_encrypted_credentials(id, None)
        await tx[SourceStore].save(after, expected_version=before.version)
        await self._store_for_undo(
            tx, await tx[AuditLog].add(_create_credentials_change(before, has_credentials=False)), deleted_credentials
        )
        return after

    async def prepare_test(self, tx: Tx, id: str) -> SourceTestExecution | SourceTest:
        """Return a source test to run after the transaction, or the result of a test that has already failed.

        Raises NotFound, and Unprocessable if the source is not pulled and no submitted data is stored.
        """
        source = await self.get(tx, id)
        info = self.connectors.find_connector(source.connector)
        if source.kind not in FETCHED_KINDS and self.find_latest_input is not None:
            return await self._create_test_of_submitted_data(tx, source, self.find_latest_input)
        if source.kind not in FETCHED_KINDS or info is None or not info.can_fetch:
            raise Unprocessable(
                f"A source of kind {source.kind} is not pulled and cannot be tested without data. Send data first, "
                f"then test."
            )
        if tx.is_dry_run:
            tx.recorded.warnings.append(_NOT_TESTED)
            return _create_failed_test("dry_run", _NOT_TESTED)
        try:
            credentials = await decrypt_credentials(tx, self.vault, self.connectors, source)
        except ValueError:
            return _create_failed_test(
                SourceFault.CREDENTIALS_REFUSED, "The stored credentials cannot be decrypted. Enter them again."
            )
        task = ConnectorTask(source.config, credentials, "catalogue", tenant=tx.tenant)
        return self._create_test(source, task)

    def _create_test(
        self,
        source: Source,
        task: ConnectorTask,
        read_submitted: Callable[[], AsyncIterator[bytes]] | None = None,
    ) -> SourceTestExecution:
        settings = self.create_feed_settings(source)
        return SourceTestExecution(
            self.connectors,
            self.readers,
            self.workspaces,
            source.connector,
            task,
            settings,
            read_submitted,
            source.has_records,
        )

    async def _create_test_of_submitted_data(
        self, tx: Tx, source: Source, find_latest: FindLatestInput
    ) -> SourceTestExecution:
        read = await find_latest(tx, source)
        if read is None:
            raise Unprocessable(
                f"A source of kind {source.kind} is not pulled, and no data has been sent. Send data first, then test."
            )
        return self._create_test(source, ConnectorTask(source.config, None, "catalogue"), read)

    def _find_destination(self, source: Source) -> str | None:
        """Return a text that names the connector and the URL to which credentials may be sent.

        Return None if the connector is not loaded.
        """
        info = self.connectors.find_connector(source.connector)
        return info.describe_credential_destination(source.config) if info else None

    def _validate_settings(
        self, kind: str, connector: str, config: Mapping[str, Any], schedule: Schedule
    ) -> ConnectorInfo | None:
        """Raise an error for invalid settings; return information on the connector, or None for kind push."""
        if wrong := (*validate_required_settings(kind, config), *validate_schedule(schedule)):
            raise InvalidRequest(
                "The source's settings are incomplete or out of bounds. Correct the fields in errors[].", fields=wrong
            )
        info = self._find_connector(kind, connector)
        if info is None:
            refuse_unknown_push_settings(config)
        elif wrong := self.schemas.find_field_errors(info.config_schema, config, "config"):
            raise InvalidRequest(
                f"The settings do not match the schema of the connector {connector}. Correct the fields in errors[].",
                fields=wrong,
            )
        refuse_forbidden_urls(config, self.allowed_hosts)
        _refuse_schedule(kind, info, schedule)
        return info

    def _find_connector(self, kind: str, name: str) -> ConnectorInfo | None:
        if kind == "push" and name == PUSH_CONNECTOR:
            return None
        info = self.connectors.find_connector(name)
        if info is None and name != PUSH_CONNECTOR:
            fitting_names = [one.name for one in self.connectors.list_connectors() if kind in one.kinds]
            suggestions = WordSuggester().format_by_similarity(name, fitting_names) or "none"
            detail = (
                f"This connector does not exist. For kind {kind} use: {suggestions}. Omit the field to use the default."
            )
            raise InvalidRequest.for_field("connector", "invalid_value", detail)
        if info is None or kind not in info.kinds:
            kinds = format_list(sorted(info.kinds)) if info else PUSH_CONNECTOR
            detail = f"The connector {name} does not support kind {kind}. Use it for kind {kinds}."
            raise Unprocessable.for_field("connector", "invalid_value", detail)
        return info

    def _create_address(self) -> str:
        if self.mail_domain is None:
            raise Unprocessable.for_field("config.inbound", "invalid_value", _MAIL_IS_OFF)
        local = "".join(secrets.choice(_LOCAL_PART_ALPHABET) for _ in range(20))
        return f"{local}@{self.mail_domain}"


_MAIL_IS_OFF = (
    "This service does not receive mail, because JOINERY_MAIL_DOMAIN is not set. Omit config.inbound and use kind "
    "file, url or push."
)
_NO_MAIL = "The source does not receive mail. Set config.inbound with its senders first."


def _to_plain_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value with plain JSON types, with floats in place of decimals."""
    plain: dict[str, Any] = json.loads(json.dumps(value, default=float))
    return plain


def _create_failed_test(code: str, message: str) -> SourceTest:
    return SourceTest(ok=False, duration_ms=0, failure=TestFailure(code, message))


def _validate_follower(source: Source) -> None:
    """Raise Unprocessable if data of a followed catalogue could be shared, or take precedence as the organisation's own data."""
    if source.licence_basis != LicenceBasis.UNKNOWN:
        detail = "The data of a followed catalogue must not leave your organisation. Set licence_basis to unknown."
        raise Unprocessable.for_field("licence_basis", "invalid_value", detail)
    if source.first_party:
        detail = "A followed catalogue is another vendor's data. Set first_party to false."
        raise Unprocessable.for_field("first_party", "invalid_value", detail)


async def _refuse_unreadable_catalogue(tx: Tx, source: Source) -> None:
    """Raise Unprocessable unless a licence permits to read the catalogue; the answer does not reveal whether it exists."""
    catalogue = source.config["catalogue"]
    if catalogue == source.catalogue:
        detail = "This is your own catalogue. Enter the catalogue of another organisation."
    elif not (await tx[HeldLicences].get_readable(catalogue)).is_readable:
        detail = "There is no such catalogue that you can read. Enter the catalogue ID (`cat_…`) of a product that you can read."
    else:
        return
    raise Unprocessable.for_field("config.catalogue", "invalid_value", detail)


def _derive_status_fields(before: Source, status: SourceStatus) -> dict[str, Any]:
    if before.status == SourceStatus.DISABLED:
        raise Conflict("The service has disabled this source, so its status cannot be changed. Contact the operator.")
    return (
        {"status": status, "status_reason": None, "failures": 0}
        if status == SourceStatus.ACTIVE
        else {"status": status}
    )


def _refuse_schedule(kind: str, info: ConnectorInfo | None, schedule: Schedule) -> None:
    if schedule.interval_minutes is None and schedule.stock_interval_minutes is None and schedule.at is None:
        return
    if kind not in FETCHED_KINDS or info is None or not info.can_fetch:
        detail = f"A source of kind {kind} is not pulled and has no schedule. Omit the schedule."
        raise Unprocessable.for_field("schedule", "invalid_value", detail)
    if schedule.stock_interval_minutes is not None and "stock" not in info.streams:
        detail = f"The connector {info.name} has no separate stock feed. Omit stock_interval_minutes."
        raise Unprocessable.for_field("schedule.stock_interval_minutes", "invalid_value", detail)


def _plan_next_pulls(source: Source, info: ConnectorInfo | None, now: datetime) -> dict[str, Any]:
    """Return the fields `next_pull` and `next_stock_pull`; both are None while required credentials are missing."""
    requires_credentials = source.kind == "api" and info is not None and info.credentials_schema is not None
    if requires_credentials and not source.has_credentials:
        return {"next_pull": None, "next_stock_pull": None}
    return plan_pulls(source, now)


def _create_credentials_change(before: Source, *, has_credentials: bool) -> Change:
    """Return the change that the audit log records when credentials are replaced or deleted, without their values."""
    old_values = {"has_credentials": before.has_credentials}
    return Change("source", before.id, "update", old_values, {"has_credentials": has_credentials})
