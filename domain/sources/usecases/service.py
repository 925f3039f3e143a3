"""What people do with sources: connect them, change them, hand in and take away their credentials, try them out."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final

from domain.audit.model import Change
from domain.kernel.errors import Conflict, FieldError, InvalidRequest, NotFound, PreconditionFailed, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.sources.audit_fields import created, updated
from domain.sources.connecting import PUSH, default_connector, missing_settings, refuse_addresses, refuse_push_settings
from domain.sources.model import FETCHED_KINDS, Schedule, Source
from domain.sources.schedules import faults, planned, schedule_of
from domain.sources.testing import BYTES, RECORDS, SECONDS, Failure, SourceTest
from ports.connectors import Answer, ConnectorInfo, Connectors, FetchFailed, Job, ParseFailed
from ports.schemas import Schemas
from ports.secrets import Vault
from ports.unit_of_work import Tx

_LOCAL_PART: Final = "abcdefghijkmnpqrstuvwxyz23456789"
"""Letters and digits that nobody mistakes for each other when an address is read aloud."""


Trial = Callable[[], Awaitable[SourceTest]]
HeaderScore = Callable[[Sequence[str]], int]


def count_named(headers: Sequence[str]) -> int:
    """How many headers say anything: the plainest way to tell a header row from others."""
    return sum(1 for header in headers if header.strip())


@dataclass(frozen=True, slots=True)
class SourceService:
    """`mail_domain` is where inbound addresses live; `allowed_hosts` (`host`, `host:port`) may be private ones.

    `score_header` tells how much a row looks like a feed's header, for tests of sources.
    """

    connectors: Connectors
    vault: Vault
    schemas: Schemas
    mail_domain: str
    allowed_hosts: frozenset[str] = frozenset()
    score_header: HeaderScore = count_named

    async def page(self, tx: Tx, page_request: PageRequest) -> Page[Source]:
        """The tenant's sources, newest first."""
        return await tx.sources.page(page_request)

    async def get(self, tx: Tx, id: str) -> Source:
        """One source. Raises NotFound."""
        return _found(await tx.sources.get(id))

    async def create(self, tx: Tx, given: Mapping[str, Any]) -> Source:
        """Connect a source; `given` is the request's body (specification, Source).

        Raises InvalidRequest for settings that are missing, unknown or wrong, and for a connector of no known name;
        Unprocessable for a connector that does not serve the kind and for addresses that are never asked.
        """
        kind, config = given["kind"], _plain(given.get("config", {}))
        connector = given.get("connector") or default_connector(kind, config)
        schedule = schedule_of(given.get("schedule", {}))
        info = self._checked(kind, connector, config, schedule)
        org = await tx.orgs.own()
        source = Source(
            id=new_id("src"),
            catalogue=org.catalogue(tx.tenant.livemode),
            name=given["name"],
            kind=kind,
            connector=connector,
            config=config,
            schedule=schedule,
            status="active",
            licence_basis=given.get("licence_basis", "unknown"),
            first_party=given.get("first_party", org.kind == "vendor"),
            has_credentials=False,
            version=1,
            created_at=tx.now,
            updated_at=tx.now,
            inbound_address=self._address() if "inbound" in config else None,
        )
        source = replace(source, **_pulls(source, info, tx.now))
        await tx.sources.add(source)
        await tx.audit.add(created(source))
        return source

    async def update(self, tx: Tx, id: str, given: Mapping[str, Any], expected: int | None) -> Source:
        """Change a source; `config` and `schedule` are replaced as wholes. `expected` is If-Match's version, or None.

        Raises NotFound, PreconditionFailed, InvalidRequest, Unprocessable; Conflict when the service disabled it.
        """
        before = _found(await tx.sources.get(id, lock=True))
        if expected not in (None, before.version):
            raise PreconditionFailed(f"The source is at version {before.version} by now; read it again.")
        changes = self._changes(before, given)
        if not changes:
            return before
        after = before.changed(tx.now, **changes)
        if {"connector", "config", "schedule"} & changes.keys():
            self._checked(after.kind, after.connector, after.config, after.schedule)
        if {"schedule", "status"} & changes.keys():
            info = self.connectors.info(after.connector)
            after = replace(after, **_pulls(after, info, tx.now))
        await tx.sources.save(after, expected_version=before.version)
        await tx.audit.add(updated(before, after))
        return after

    async def put_credentials(self, tx: Tx, id: str, credentials: Mapping[str, Any]) -> Source:
        """Seal the source's credentials, replacing any.

        Raises NotFound, Unprocessable when its connector takes none, InvalidRequest when they lack its form.
        """
        before = _found(await tx.sources.get(id, lock=True))
        info = self.connectors.info(before.connector)
        if info is None or info.credentials_schema is None:
            raise Unprocessable(f"The connector {before.connector} takes no credentials.")
        wrong = self.schemas.faults(info.credentials_schema, credentials, "credentials")
        if wrong:
            told = tuple(replace(fault, detail="It is not what the connector asks for.") for fault in wrong)
            raise InvalidRequest("The credentials are not of the form that the connector asks for.", fields=told)
        after = before.changed(tx.now, has_credentials=True)
        if not before.has_credentials and before.next_pull is None:
            after = replace(after, **_pulls(after, info, tx.now))
        await tx.sources.seal(id, self.vault.seal(_plain(credentials), id))
        await tx.sources.save(after, expected_version=before.version)
        await tx.audit.add(_credentials_change(before, replaced=True))
        return after

    async def delete_credentials(self, tx: Tx, id: str) -> Source:
        """Forget the source's credentials; without any it stays as it is. Raises NotFound."""
        before = _found(await tx.sources.get(id, lock=True))
        if not before.has_credentials:
            return before
        after = before.changed(tx.now, has_credentials=False)
        await tx.sources.seal(id, None)
        await tx.sources.save(after, expected_version=before.version)
        await tx.audit.add(_credentials_change(before, replaced=False))
        return after

    async def test(self, tx: Tx, id: str) -> Trial:
        """A trial that reaches the source once as a run would, reads its first records, and stores nothing.

        Call it when the transaction is over. What goes wrong on the way is told in `failure`. A dry run calls nobody.
        Raises NotFound, Unprocessable for kinds that are not pulled.
        """
        source = _found(await tx.sources.get(id))
        info = self.connectors.info(source.connector)
        if source.kind not in FETCHED_KINDS or info is None or not info.fetches:
            raise Unprocessable(f"A source of kind {source.kind} is not pulled, so there is nothing to reach.")
        if tx.dry:
            tx.recorded.warnings.append("A dry run does not call the source.")
            return _failing("dry_run", "A dry run does not call the source.")
        sealed = await tx.sources.sealed(id)
        try:
            credentials = self.vault.open(sealed, id) if sealed else None
        except ValueError:
            return _failing("credentials_refused", "The stored credentials cannot be opened; store them again.")
        return partial(self._reach, source.connector, Job(source.config, credentials, "catalogue"))

    async def _reach(self, connector: str, job: Job) -> SourceTest:
        started, seen = monotonic(), SourceTest(ok=False, duration_ms=0)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "snapshot"
            try:
                async with asyncio.timeout(SECONDS), self.connectors.fetch(connector, job) as answer:
                    seen = _answered(answer)
                    read, whole = await _read(answer.chunks, path)
                seen = replace(seen, bytes_read=read)
                sample = await asyncio.to_thread(self._sample, connector, job, path, whole)
                seen = replace(seen, ok=True, sample=sample)
            except FetchFailed as error:
                seen = replace(seen, failure=Failure(error.code, str(error)))
            except ParseFailed as error:
                seen = replace(seen, failure=Failure("parse_failed", str(error)))
            except TimeoutError:
                seen = replace(seen, failure=Failure("fetch_failed", f"It took longer than {SECONDS} seconds."))
        return replace(seen, duration_ms=round((monotonic() - started) * 1000))

    def _sample(self, connector: str, job: Job, path: Path, whole: bool) -> list[dict[str, Any]]:
        """The first records of the snapshot; one that was cut short may end in the middle of one."""
        sample: list[dict[str, Any]] = []
        try:
            for table in self.connectors.tables(connector, job, path, self.score_header):
                for _, cells in table.rows:
                    named = zip(table.headers, cells, strict=False)
                    sample.append({header: cell for header, cell in named if cell is not None})
                    if len(sample) == RECORDS:
                        return sample
        except ParseFailed:
            if whole:
                raise
        return sample

    def _changes(self, before: Source, given: Mapping[str, Any]) -> dict[str, Any]:
        """What really changes, as fields of a Source."""
        asked: dict[str, Any] = {
            name: given[name] for name in ("name", "connector", "status", "licence_basis") if name in given
        }
        if "config" in given:
            asked["config"] = _plain(given["config"])
            asked["inbound_address"] = (
                (before.inbound_address or self._address()) if "inbound" in asked["config"] else None
            )
        if "schedule" in given:
            asked["schedule"] = schedule_of(given["schedule"])
        changes = {name: value for name, value in asked.items() if getattr(before, name) != value}
        if "status" in changes:
            changes |= _status_change(before, changes["status"])
        return changes

    def _checked(
        self, kind: str, connector: str, config: Mapping[str, Any], schedule: Schedule
    ) -> ConnectorInfo | None:
        """The connector's declaration (None for pushes) once kind, settings and schedule suit it."""
        if wrong := (*missing_settings(kind, config), *faults(schedule)):
            raise InvalidRequest("The source's settings are not complete or not in bounds.", fields=wrong)
        info = self._connector(kind, connector)
        if info is None:
            refuse_push_settings(config)
        elif wrong := self.schemas.faults(info.config_schema, config, "config"):
            raise InvalidRequest("The settings are not what the connector takes.", fields=wrong)
        refuse_addresses(config, self.allowed_hosts)
        _refuse_schedule(kind, info, schedule)
        return info

    def _connector(self, kind: str, name: str) -> ConnectorInfo | None:
        if kind == "push" and name == PUSH:
            return None
        info = self.connectors.info(name)
        if info is None and name != PUSH:
            fault = FieldError("connector", "invalid_value", f"There is no connector named {name}.")
            raise InvalidRequest(fault.detail, fields=(fault,))
        if info is None or kind not in info.kinds:
            raise Unprocessable(f"The connector {name} does not read sources of kind {kind}.")
        return info

    def _address(self) -> str:
        local = "".join(secrets.choice(_LOCAL_PART) for _ in range(20))
        return f"{local}@{self.mail_domain}"


def _found(source: Source | None) -> Source:
    if source is None:
        raise NotFound
    return source


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """The value as JSON holds it: exact decimals become numbers."""
    plain: dict[str, Any] = json.loads(json.dumps(value, default=float))
    return plain


def _failing(code: str, message: str) -> Trial:
    async def trial() -> SourceTest:
        return SourceTest(ok=False, duration_ms=0, failure=Failure(code, message))

    return trial


def _answered(answer: Answer) -> SourceTest:
    return SourceTest(
        ok=False,
        duration_ms=0,
        status=answer.status,
        served_by=answer.served_by,
        final_url=answer.final_url,
        content_type=answer.content_type,
    )


async def _read(chunks: AsyncIterator[bytes], path: Path) -> tuple[int, bool]:
    """Keep the first BYTES of the feed; answers how many bytes that were and whether it was the whole."""
    read = 0
    with path.open("wb") as file:
        async for chunk in chunks:
            file.write(chunk[: BYTES - read])
            read += min(len(chunk), BYTES - read)
            if read == BYTES:
                return read, False
    return read, True


def _status_change(before: Source, status: str) -> dict[str, Any]:
    if before.status == "disabled":
        raise Conflict("The service has disabled this source; its status cannot be changed.")
    return {"status": status, "status_reason": None, "failures": 0} if status == "active" else {"status": status}


def _refuse_schedule(kind: str, info: ConnectorInfo | None, schedule: Schedule) -> None:
    if schedule.interval_minutes is None and schedule.stock_interval_minutes is None:
        return
    if kind not in FETCHED_KINDS or info is None or not info.fetches:
        raise Unprocessable(f"A source of kind {kind} is not pulled, so it takes no schedule.")
    if schedule.stock_interval_minutes is not None and "stock" not in info.streams:
        raise Unprocessable(f"The connector {info.name} does not read stock apart, so it takes no stock interval.")


def _pulls(source: Source, info: ConnectorInfo | None, now: datetime) -> dict[str, Any]:
    """The next pulls; a source that must sign in is left alone until it can."""
    waits = source.kind == "api" and info is not None and info.credentials_schema is not None
    if waits and not source.has_credentials:
        return {"next_pull": None, "next_stock_pull": None}
    return planned(source, now)


def _credentials_change(before: Source, *, replaced: bool) -> Change:
    """Only that credentials were set or forgotten; never what they are."""
    had = {"has_credentials": before.has_credentials}
    return Change("source", before.id, "update", had, {"has_credentials": replaced})
