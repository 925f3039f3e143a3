"""Spans of requests: children of the caller's span, named by route, without content of paths."""

import pytest

from domain.kernel.ids import new_id
from domain.kernel.trace_context import parse_trace_context
from ports.telemetry import SpanKind
from tests.http.application import run_application
from tests.http.client import Response
from tests.support.memory.tracing import MemorySpan, MemoryTracing

pytestmark = pytest.mark.asyncio
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_a_request_is_a_span_of_the_callers_trace() -> None:
    tracing = MemoryTracing()
    async with run_application(tracing=tracing) as application:
        client = await application.create_client()
        response = await client.get("/v1/sources?limit=1&q=what-i-look-for", traceparent=PARENT)
        [span] = tracing.spans
    assert (
        span.parent == parse_trace_context(PARENT)
        and span.context.trace == PARENT[3:35]
        and span.kind is SpanKind.SERVER
    )
    assert span.ended and span.name == f"GET {span.notes['http.route']}"
    assert span.notes["http.response.status_code"] == response.status
    assert (
        span.notes["joinery.request_id"] == response.headers["request-id"]
        and span.notes["joinery.org"] == application.orgs["Fjord"].id
    )
    assert "what-i-look-for" not in repr(span)


async def _find_span(tracing: MemoryTracing, response: Response) -> MemorySpan:
    span = tracing.spans.pop()
    assert span.ended and span.notes["joinery.request_id"] == response.headers["request-id"]
    assert span.notes["http.response.status_code"] == response.status
    return span


async def test_refusals_are_not_recorded_as_failures() -> None:
    tracing = MemoryTracing()
    async with run_application(tracing=tracing) as application:
        client = await application.create_client()
        unknown = await _find_span(tracing, await client.get("/v1/svc_rk_live_secret"))
        assert unknown.name == "GET" and unknown.failure is None and "secret" not in repr(unknown)
        assert unknown.notes["joinery.error_code"] == "not_found"
        missing = await _find_span(tracing, await client.get(f"/v1/sources/{new_id('src')}", traceparent="rubbish"))
        assert missing.name == "GET /v1/sources/{id}" and missing.parent is None and missing.failure is None
        unauthenticated = await _find_span(
            tracing, await application.build_client("svc_rk_live_nobody").get("/v1/sources")
        )
        assert (
            unauthenticated.notes["joinery.error_code"] == "authentication_required"
            and "joinery.org" not in unauthenticated.notes
        )
        other = await _find_span(tracing, await client.send_json("BREW", "/v1/sources", {}))
        assert other.name in ("_OTHER", "_OTHER /v1/sources")


async def test_server_errors_are_failures() -> None:
    tracing = MemoryTracing()
    async with run_application(tracing=tracing) as application:
        client = await application.create_client()

        class Broken(Exception):
            """svc_rk_live_secret"""

        def broken(*_: object) -> None:
            raise Broken("svc_rk_live_secret")

        application.uow.begin_reading = broken  # type: ignore[method-assign]
        span = await _find_span(tracing, await client.get("/v1/sources"))
        assert (
            span.notes["http.response.status_code"] == 500
            and span.failure == "internal_error"
            and "svc_" not in repr(span)
        )
