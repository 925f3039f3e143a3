"""Logs of API requests: GET /v1/request-logs and /v1/request-logs/{id}."""

from collections.abc import Sequence

from adapters.api_json import request_logs as wire
from domain.jobs.usecases.ticks import Tick
from domain.request_logs.model import RequestLogFilter
from domain.request_logs.usecases import RequestLogService
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area
from ports.maintenance import Maintenance


def _create_ticks(maintenance: Maintenance) -> Sequence[Tick]:
    return [Tick("old request logs", 3600, maintenance.purge_request_logs, is_purge=True)]


REQUEST_LOGS = Collection("request_logs", wire.REQUEST_LOG, "request_logs", "/v1/request-logs")

AREA = Area(
    "request_logs",
    "Request logs",
    "API requests of your organisation.",
    create_service=RequestLogService,
    operations=(
        REQUEST_LOGS.list(
            "List request logs",
            "Returns every request of the organisation in this mode, including rejected ones, newest first. Entries appear within a "
            "second and are kept for the plan's `request_log_days`.",
            RequestLogService.list_request_logs,
            create_filter=RequestLogFilter,
            query=wire.FILTERS,
            dataset="request_logs",
        ),
        REQUEST_LOGS.read(
            "Read a request log",
            "Returns one request by its Request-Id; the newest, if a client used the ID more than once.",
        ),
    ),
    create_ticks=_create_ticks,
)
