"""Arbitrary requests to every operation of a running API: documented, fast, memory-bounded and isolated responses."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from entrypoints.api.app import create_app
from entrypoints.dependencies import Dependencies
from entrypoints.http.pressure import NEVER_SHED
from entrypoints.operations.openapi import build_document
from tests.flows.service_processes import FEEDS, ServiceProcesses, Tenancy
from tests.fuzz.exploration import Effort, check_examples, parametrize_effort
from tests.fuzz.requests import FuzzRequest, FuzzResponse, RequestGenerator, send_request
from tests.postgres.databases import create_database
from tests.support.operation_table import load_operation_table
from tests.support.pauses import monitor_pauses
from tests.support.processes import list_descendants, memory
from tests.tenancy.application import ServedApplication

CHANGING = ("sources.update", "webhooks.update", "webhooks.delete")
"""Operations that change or delete shared resources and therefore run last."""
OPERATIONS = sorted(
    ((row.id, row.method, row.path) for row in load_operation_table()),
    key=lambda row: CHANGING.index(row[0]) if row[0] in CHANGING else -1,
)
MEMORY = 400
"""Memory limit of the API in MiB; it starts at about 90, and may hold 64 MiB of an organisation's bodies."""
READER_MEMORY = 320
SLOWEST = 25.0
"""Maximum response time in seconds: a source test of an unreachable address may take that long."""
PAUSE, TIMES = 1.5, 20
"""Seconds that the event loop may pause, or the factor of an idle API's pause if that is more."""
MARKER = "OF-ANOTHER-TENANT"
EDGE = frozenset({400, 404, 405, 408, 411, 413, 414, 417, 426, 431, 505})
"""Statuses of requests that are refused before the pipeline."""


@dataclass
class ApiTarget:
    """API under test with a request generator and the response schemas."""

    stage: ServiceProcesses
    api_pid: int
    mine: Tenancy
    foreign: frozenset[str]
    """IDs of the other tenant's resources."""
    generator: RequestGenerator

    def find_validator(self, operation: str, status: int, media: str) -> Draft202012Validator | None:
        """Return the validator of a response, or None if it is not documented."""
        components = self.generator.document["components"]
        for item in self.generator.document["paths"].values():
            for row in item.values():
                if row["operationId"] == operation and (status == 200 or str(status) in row["responses"]):
                    content = row["responses"].get(str(status), {}).get("content", {})
                    if status == 200 and "x-dry-run" in row:
                        content = {**content, **components["responses"]["preview"]["content"]}
                    schema = content.get(media, {}).get("schema")
                    if schema is None:
                        return Draft202012Validator(True) if not content or media.startswith("text/") else None
                    return Draft202012Validator({**schema, "components": components})
        return None


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiTarget]:
    """Yield an API with two tenants with one resource of each type, monitored together with an idle API."""
    home = tmp_path_factory.mktemp("fuzz")
    stage = ServiceProcesses(asyncio.run(create_database("fuzz")), home)
    (home / "idle").mkdir()
    idle = ServiceProcesses(stage.database_url, home / "idle")
    try:
        process = stage.start_api()
        idle.start_api()
        mine, theirs = (
            stage.create_organisation(livemode=False, kind="vendor"),
            stage.create_organisation(kind="vendor"),
        )
        ids = [
            stage.run_with_dependencies(lambda container, tenancy=tenancy: _create_tenancy(container, tenancy))  # type: ignore[misc]
            for tenancy in (mine, theirs)
        ]
        _write_marker(theirs, ids[1])
        known = {prefix: [ids[0][prefix], ids[1][prefix]] for prefix in ids[0]}
        known["src"] += [
            mine.api.create_source("url", config={"url": f"http://{FEEDS}:1/feed.csv"}),
            mine.api.create_source("file"),
        ]
        described = RequestGenerator(
            build_document(load_operation_table(), "https://api.example", "https://docs.example"), known
        )
        with monitor_pauses(stage.port, idle.port, every=0.05) as pulse:
            yield ApiTarget(
                stage, process.pid, mine, frozenset(ids[1].values()) - frozenset(ids[0].values()), described
            )
            longest = pulse.longest()
        assert longest[stage.port] < max(PAUSE, TIMES * longest[idle.port]), longest
    finally:
        stage.stop()
        idle.stop()


async def _create_tenancy(container: Dependencies, tenancy: Tenancy) -> Mapping[str, str]:
    app = create_app(container, thresholds=NEVER_SHED)
    async with app.test_app():
        return (
            await ServedApplication(app, container).create_tenancy(tenancy.organisation, tenancy.tenant.livemode)
        ).ids


def _write_marker(theirs: Tenancy, ids: Mapping[str, str]) -> None:
    """Write the marker into every text field of the other tenant."""
    api = theirs.api
    api.patch_source(ids["src"], name=MARKER)
    assert api.call("PATCH", f"/v1/webhook-endpoints/{ids['whe']}", {"description": MARKER}, If_Match="*").status == 200
    source = api.create_source("push", name=MARKER, config={"currency": "usd", "warehouse": MARKER})
    record = {"product": {"external_id": MARKER, "title": MARKER}, "variants": [{"external_id": MARKER}]}
    api.push(source, [record])
    for path in ("/v1/sources", "/v1/webhook-endpoints"):
        assert MARKER in api.call("GET", path, User_Agent=MARKER).body.decode()


@pytest.mark.parametrize(("name", "method", "path"), OPERATIONS, ids=[row[0] for row in OPERATIONS])
@parametrize_effort(examples=24, parts=len(OPERATIONS))
def test_arbitrary_requests_are_answered_as_documented(
    target: ApiTarget, name: str, method: str, path: str, effort: Effort
) -> None:
    def check(request: FuzzRequest) -> None:
        began = time.monotonic()
        response = send_request(target.stage.port, request, str(target.mine.api.secret))
        assert time.monotonic() - began < SLOWEST
        assert response is not None or request.surplus, "no answer"
        if response is not None:
            _check_response(target, request, response)
        _check_memory(target)

    check_examples(effort, check, target.generator.build_requests(method, path))


def _check_response(target: ApiTarget, request: FuzzRequest, response: FuzzResponse) -> None:
    assert response.status < 500, response.body
    assert MARKER.encode() not in response.body
    if response.status < 300 and not request.operation.startswith("request_logs."):  # request logs contain the request
        assert not [id_ for id_ in target.foreign if id_.encode() in response.body], response.body
    media = response.headers.get("content-type", "").partition(";")[0]
    if response.status in EDGE and media != "application/problem+json":
        assert len(response.body) < 200, response
        return
    if response.status in {304, 204}:
        assert response.body == b""
        return
    if response.status in (404, 405):
        validator: Any = Draft202012Validator({**_PROBLEM, "components": target.generator.document["components"]})
    else:
        validator = target.find_validator(request.operation, response.status, media)
    assert validator is not None, (response.status, media, response.body)
    if media.endswith("json"):
        value = response.json()
        faults = [error.message for error in validator.iter_errors(value)]
        assert not faults, (faults[:3], response.body)


_PROBLEM = {"$ref": "#/components/schemas/problem"}


def _check_memory(target: ApiTarget) -> None:
    held = memory(target.api_pid)
    assert 0 < held < MEMORY, f"the API holds {held} MiB"
    readers = {pid: memory(pid) for pid in list_descendants(target.api_pid)}
    assert all(each < READER_MEMORY for each in readers.values()), readers


def test_the_api_never_restarted(target: ApiTarget) -> None:
    """The process never restarted and still responds."""
    assert target.mine.api.is_ready()
    assert [process.pid for process in target.stage.processes if process.poll() is None] == [target.api_pid]
