"""Last step: the request log, of every request that has an organisation, refusals included."""

import re
from collections.abc import Awaitable
from time import perf_counter
from typing import Final

from domain.request_logs.model import RequestLog
from entrypoints.http.exchange import Response
from entrypoints.http.request_log_queue import RequestLogQueue
from entrypoints.http.request_state import RequestState

LONGEST: Final = 500
LONGEST_METHOD: Final = 32
_SECRET: Final = re.compile(r"(svc_(?:[a-z]+_){1,2})[0-9A-Za-z]{12,}")


def without_secrets(text: str) -> str:
    """The text with any credential in it cut down to its prefix: people do put keys into addresses."""
    return _SECRET.sub(r"\1…", text) if "svc_" in text else text


class LogRequest:
    """Puts the entry on the queue."""

    def __init__(self, queue: RequestLogQueue, latest: str) -> None:
        self._queue = queue
        self._latest = latest

    def __call__(self, state: RequestState, response: Response) -> Awaitable[None] | None:
        """A 401 has no organisation and is not logged. Answers an awaitable while the queue is full."""
        caller, request, route = state.principal, state.request, state.match.route
        if caller is None or response.status == 401:
            return None
        headers = request.headers
        key, agent = headers.get("idempotency-key"), headers.get("user-agent")
        return self._queue.put(
            RequestLog(
                id=state.request_id,
                tenant=caller.tenant,
                method=request.method[:LONGEST_METHOD],
                path=without_secrets(request.path),
                route=route.operation.path if route is not None else state.place or None,
                query=without_secrets(request.query) or None,
                status=response.status,
                error_code=state.error_code,
                duration_ms=int((perf_counter() - state.started) * 1000),
                actor=caller.actor,
                via=caller.via,
                api_version=state.version or caller.organisation.api_version or self._latest,
                idempotency_key=without_secrets(key[:LONGEST]) if key else None,
                ip=state.address or None,
                user_agent=without_secrets(agent[:LONGEST]) if agent else None,
                created_at=state.now,
            )
        )
