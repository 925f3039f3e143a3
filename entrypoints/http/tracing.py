"""A request as a span: which operation, whose, how it was answered. No address, no query, no header but the caller's place."""

from collections.abc import Awaitable, Callable

from entrypoints.http.exchange import Response
from entrypoints.http.metrics import METHODS
from entrypoints.http.request_state import RequestState
from ports.telemetry import Span, SpanKind, Tracing


async def traced(
    tracing: Tracing, state: RequestState, answer: Callable[[RequestState], Awaitable[Response]]
) -> Response:
    """The answer, from within a span: below the one that the caller names by `traceparent`, or a trace of its own."""
    request, route = state.request, state.match.route
    method = request.method if request.method in METHODS else "_OTHER"
    name = f"{method} {route.operation.path}" if route is not None else method
    with tracing.span(name, SpanKind.SERVER, parent=request.headers.get("traceparent")) as span:
        span.note(http__request__method=method, http__route=route.operation.path if route is not None else None)
        if route is not None:
            span.note(joinery__operation=route.operation.id)
        response = await answer(state)
        _told(span, state, response)
        return response


def _told(span: Span, state: RequestState, response: Response) -> None:
    """Refusals are the caller's business; what is ours is a failure."""
    span.note(http__response__status_code=response.status, joinery__request_id=state.request_id)
    if state.error_code is not None:
        span.note(joinery__error_code=state.error_code)
    if state.principal is not None:
        tenant = state.principal.tenant
        span.note(joinery__org=tenant.org, joinery__livemode=tenant.livemode)
    if response.status >= 500:
        span.failed(state.error_code or str(response.status))
