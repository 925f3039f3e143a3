"""Request logs (domain/request_logs/ports.py)."""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from adapters.postgres import request_logs
from adapters.postgres.stores import SCAN_LIMIT
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, Tenant
from domain.request_logs.model import RequestLog, RequestLogFilter
from domain.request_logs.ports import RequestLogStore
from tests.support import builders, filters
from tests.support.backend import Backend
from tests.support.pagination import collect_items

pytestmark = pytest.mark.asyncio


async def _list_all(backend: Backend, tenant: Tenant, limit: int = 100) -> list[RequestLog]:
    async def fetch(page_request: PageRequest) -> Page[RequestLog]:
        async with backend.uow.begin_reading(tenant) as tx:
            return await tx[RequestLogStore].page(page_request, RequestLogFilter())

    return await collect_items(fetch, limit)


async def test_keeps_every_field(backend: Backend, tenant: Tenant) -> None:
    full = builders.request_log(
        tenant,
        query="limit=3",
        error_code="not_found",
        status=404,
        actor=Actor("agent", "agt_1", "usr_1"),
        idempotency_key="k",
        duration_ms=0,
    )
    bare = builders.request_log(tenant, route=None, ip=None, user_agent=None)
    await backend.sink.write([full, bare])
    async with backend.uow.begin_reading(tenant) as tx:
        assert await tx[RequestLogStore].get(full.id) == full
        assert await tx[RequestLogStore].get(bare.id) == bare
        assert await tx[RequestLogStore].get(new_id("req")) is None


@pytest.mark.parametrize(
    "text",
    ["\\u0000", "\\", "a\\", '"', "\\\\u0000", "\0", "a\0b", "\ud800", "\x80\xff", "\x7f", "\u2028", "\\ud800", "é🙂"],
)
async def test_any_text_is_stored(backend: Backend, tenant: Tenant, text: str) -> None:
    """Characters that a text column cannot store are removed; the log and its neighbours are kept."""
    odd = builders.request_log(tenant, path=f"/v1/{text}", query=text, user_agent=text, idempotency_key=text, ip=text)
    neighbours = [builders.request_log(await backend.tenant()), builders.request_log(tenant)]
    await backend.sink.write([neighbours[0], odd, neighbours[1]])
    async with backend.uow.begin_reading(tenant) as tx:
        kept = await tx[RequestLogStore].get(odd.id)
        assert await tx[RequestLogStore].get(neighbours[1].id) == neighbours[1]
    assert kept is not None and kept.user_agent in (text, text.replace("\0", "").replace("\ud800", ""))
    async with backend.uow.begin_reading(neighbours[0].tenant) as tx:
        assert await tx[RequestLogStore].get(neighbours[0].id) == neighbours[0]


async def test_a_reused_id_returns_the_newest_log(backend: Backend, tenant: Tenant) -> None:
    first = builders.request_log(tenant, path="/v1/first")
    second = first._replace(path="/v1/second", created_at=first.created_at + timedelta(seconds=1))
    await backend.sink.write([second, first])
    async with backend.uow.begin_reading(tenant) as tx:
        assert await tx[RequestLogStore].get(first.id) == second
    assert len(await _list_all(backend, tenant)) == 2


async def test_belongs_to_one_tenant_and_mode(backend: Backend, tenant: Tenant) -> None:
    test, other = replace(tenant, livemode=False), await backend.tenant()
    logs = {one: builders.request_log(one) for one in (tenant, test, other)}
    await backend.sink.write(list(logs.values()))
    for one, log in logs.items():
        assert await _list_all(backend, one) == [log]
    async with backend.uow.begin_reading(test) as tx:
        assert await tx[RequestLogStore].get(logs[tenant].id) is None


@pytest.mark.parametrize("limit", [1, 2, 5, 100])
async def test_pages_newest_first(backend: Backend, tenant: Tenant, limit: int) -> None:
    moments = [builders.MOMENT + timedelta(milliseconds=7 * number) for number in range(12)]
    logs = [builders.request_log(tenant, created_at=moment) for moment in moments]
    await backend.sink.write([*logs[6:], *logs[:6]])
    assert await _list_all(backend, tenant, limit) == logs[::-1]


@pytest.mark.parametrize("limit", [1, 3])
async def test_pages_backwards(backend: Backend, tenant: Tenant, limit: int) -> None:
    logs = [builders.request_log(tenant, created_at=builders.MOMENT + timedelta(seconds=n)) for n in range(7)]
    await backend.sink.write(logs)

    async def fetch(page_request: PageRequest) -> Page[RequestLog]:
        async with backend.uow.begin_reading(tenant) as tx:
            return await tx[RequestLogStore].page(page_request, RequestLogFilter())

    page = await fetch(PageRequest(5))
    assert page.next_key is not None
    assert await collect_items(fetch, limit, start=page.next_key, backwards=True) == logs[::-1][:4]
    assert await collect_items(fetch, limit, start=page.next_key) == logs[::-1][5:]


async def test_requests_at_the_same_time_are_all_listed(backend: Backend, tenant: Tenant) -> None:
    logs = [builders.request_log(tenant) for _ in range(9)]
    await backend.sink.write(logs)
    seen = await _list_all(backend, tenant, 2)
    assert sorted(log.id for log in seen) == sorted(log.id for log in logs)


WANTED = [
    RequestLogFilter(),
    RequestLogFilter(status="4xx"),
    RequestLogFilter(status="404", method="GET"),
    RequestLogFilter(status="2xx"),
    RequestLogFilter(route="/v1/products", actor="key_2"),
    RequestLogFilter(error_code="conflict"),
    RequestLogFilter(actor="key_1", since=builders.MOMENT - timedelta(days=3)),
    RequestLogFilter(since=builders.MOMENT - timedelta(days=9), until=builders.MOMENT - timedelta(days=2)),
    RequestLogFilter(until=builders.MOMENT - timedelta(days=6), method="POST"),
    RequestLogFilter(since=builders.MOMENT + timedelta(days=1)),
]


@pytest.mark.parametrize("few", [False, True], ids=["whole", "looks at few"])
async def test_filters_over_many_days(
    backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, *, few: bool
) -> None:
    """Both directions return each matching log once, also across pages that end before they are full."""
    if few:
        monkeypatch.setattr(request_logs, "SCAN_LIMIT", 4)
        statement = request_logs.SQL["list_logs"].replace(f"LIMIT {SCAN_LIMIT}", "LIMIT 4")
        monkeypatch.setitem(request_logs.SQL, "list_logs", statement)
    dice, logs = Random(7), []
    for number in range(120):
        status = dice.choice((200, 200, 200, 201, 404, 409, 500))
        logs.append(
            builders.request_log(
                tenant,
                created_at=builders.MOMENT - timedelta(hours=2 * number, milliseconds=dice.choice((0, 1))),
                status=status,
                error_code={404: "not_found", 409: "conflict", 500: "internal_error"}.get(status),
                method=dice.choice(("GET", "GET", "POST")),
                route=dice.choice(("/v1/products", "/v1/sources", None)),
                actor=Actor("api_key", dice.choice(("key_1", "key_2"))),
            )
        )
    await backend.sink.write(logs)
    for wanted in WANTED:

        async def fetch(page_request: PageRequest, wanted: RequestLogFilter = wanted) -> Page[RequestLog]:
            async with backend.uow.begin_reading(tenant) as tx:
                return await tx[RequestLogStore].page(page_request, wanted)

        expected = [log for log in logs if filters.request_matches(wanted, log)]
        assert await collect_items(fetch, 7, full=not few) == expected, wanted
        first = await fetch(PageRequest(50))
        if first.next_key is not None:
            seen = list(first.items)
            assert await collect_items(fetch, 7, start=first.next_key, backwards=True, full=not few) in (
                seen,
                seen[:-1],
            ), wanted
