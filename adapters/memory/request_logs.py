"""Request logs in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adapters.memory.access import KEY_USES, KeyUse
from adapters.memory.table import MemoryDatabase, Table, Transaction
from domain.kernel.paging import Page, PageRequest
from domain.request_logs.model import RequestLog, RequestLogFilter


@dataclass(frozen=True, slots=True)
class KeptLog:
    """A log and its number, since a client may use one Request-Id twice."""

    number: int
    log: RequestLog


def _key(kept: KeptLog) -> str:
    return f"{kept.log.created_at.isoformat(timespec='microseconds')}/{kept.number:015d}"


REQUEST_LOGS: Final = Table[KeptLog]("request_logs", _key)


class MemoryRequestLogs:
    """RequestLogStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._rows = transaction.rows(REQUEST_LOGS)

    async def get(self, id: str) -> RequestLog | None:
        newest = max(self._rows.where(lambda kept: kept.log.id == id), key=_key, default=None)
        return newest.log if newest else None

    async def page(self, page_request: PageRequest, wanted: RequestLogFilter) -> Page[RequestLog]:
        page = self._rows.page(page_request, lambda kept: wanted.matches(kept.log))
        return Page(tuple(kept.log for kept in page.items), page.has_more, page.next_key)


class MemoryRequestLogSink:
    """RequestLogSink."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        for log in logs:
            if log.actor.kind == "api_key":
                self._store.write(KEY_USES, log.tenant, KeyUse(log.actor.id, log.created_at))
            self._store.write(REQUEST_LOGS, log.tenant, KeptLog(self._store.next_number(), log))
        return []
