"""Agreements in PostgreSQL: versions in a reference table, and acceptances of each tenant."""

from adapters.postgres.stores import ReferenceTableReader, fetch_all, fetch_first, load_statements
from adapters.postgres.table import MultiColumnCodec, RowMapping, Table, TableStore
from domain.agreements.model import Agreement, AgreementAcceptance, AgreementKind, Signer
from domain.agreements.ports import AgreementRegistry, AgreementStore

_VERSIONS = RowMapping(Agreement)
ACCEPTANCES = Table(
    AgreementAcceptance,
    "agreement_acceptances",
    special_codecs={
        "signer": MultiColumnCodec(Signer, {"user": "signer", "name": "signer_name", "title": "signer_title"})
    },
    conflicts={"agreement_acceptances_version": "The organisation has already accepted this version."},
)
SQL = load_statements("agreements", agreement=_VERSIONS.build_column_list(), acceptance=ACCEPTANCES.build_column_list())


class PostgresAgreementStore(TableStore[AgreementAcceptance], AgreementStore):
    """Versions of agreements, and acceptances of the tenant."""

    _sql, _table = SQL, ACCEPTANCES
    get_newest = fetch_first(_VERSIONS.build_from_row)
    find_version = fetch_first(_VERSIONS.build_from_row)

    async def find_newest_acceptance(self, kind: AgreementKind, *, lock: bool = False) -> AgreementAcceptance | None:
        if lock:
            await self._session.acquire_lock("agreement_acceptances", kind)
        return await self._fetch_first(ACCEPTANCES.build_from_row, "find_newest_acceptance", kind=kind)


class PostgresAgreementRegistry(ReferenceTableReader, AgreementRegistry):
    """Versions of agreements, for operators."""

    _sql = SQL
    get_newest = fetch_first(_VERSIONS.build_from_row)
    list_versions = fetch_all(_VERSIONS.build_from_row)

    async def publish(self, agreement: Agreement) -> bool:
        async with self._begin_as_owner() as connection:
            return await connection.run(SQL["publish"], _VERSIONS.build_params(agreement)) == 1
