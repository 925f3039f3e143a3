"""Trace and metrics of a request through the service's processes, as a collector and Prometheus receive them."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from subprocess import Popen
from urllib.request import urlopen

import pytest

from domain.jobs.ports import JobStore
from entrypoints.dependencies import Dependencies
from ports.unit_of_work import UnitOfWork

pytest.importorskip("opentelemetry.sdk", reason="the extra otlp is not installed")

from adapters.postgres.dump import record_backup
from benchmarks.receiver_client import ReceiverClient
from domain.jobs.model import NewJob
from domain.kernel.ids import new_id
from domain.matching.index import MATCHING_LANE
from domain.runs.model import RunStatus
from domain.webhooks.model import AttemptFailure
from tests.flows.feeds import build_record
from tests.flows.service_processes import ROOT, ServiceProcesses, free_port, wait_until
from tests.postgres.databases import create_database
from tests.support import builders
from tests.support.collector import Collector, ReceivedSpan, run_collector
from tests.support.webhook_endpoints import create_endpoint, run_receiver
from tests.telemetry.monitoring import list_queries, load_panels, load_rules
from tests.telemetry.promql import Exposition, find_faults, parse_exposition

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PORTS = ("JOINERY_METRICS_PORT", "JOINERY_WORKER_METRICS_PORT", "JOINERY_SCHEDULER_METRICS_PORT")
WORDS = {
    "lane": frozenset({MATCHING_LANE}),
    "outcome": frozenset({"done", "failed", "lost", "stopped", "succeeded", *(one.value for one in AttemptFailure)}),
    "status": frozenset(one.value for one in RunStatus) | {"401", "429"},
}
"""Label values that appear at other times."""
SECRETS = ("of-the-receiver", "what-i-look-for")


@dataclass
class ObservedService:
    """Service that has processed one request of each kind, with its collector and metrics."""

    stage: ServiceProcesses
    collector: Collector
    scheduler: "Popen[bytes]"
    run: str
    secret: str
    exposition: Exposition
    """Metrics of all processes, and of the scheduler while a job waited."""

    def list_spans(self, process: str) -> list[ReceivedSpan]:
        return [span for span in self.collector.spans() if span.process == process]


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedService]:
    ports = {name: free_port() for name in PORTS}
    with run_collector() as collector:
        env = {"JOINERY_OTLP_URL": collector.url, **{name: str(port) for name, port in ports.items()}}
        stage = ServiceProcesses(asyncio.run(create_database("telemetry")), tmp_path_factory.mktemp("telemetry"), env)
        try:
            _queue_due_job(stage)
            scheduler = stage.start("scheduler")
            stage.start_api()
            waiting = wait_until(
                lambda: _fetch_waiting(ports["JOINERY_SCHEDULER_METRICS_PORT"]), "a job waits", within=40
            )
            stage.start("worker")
            with run_receiver(stage) as at:
                run, secret = _exercise_service(stage, at)
                shown = parse_exposition(
                    [waiting, *(text for port in ports.values() if (text := _fetch_metrics(port)))]
                )
                yield ObservedService(stage, collector, scheduler, run, secret, shown)
        finally:
            stage.stop()


def _fetch_metrics(port: int) -> str | None:
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


def _fetch_waiting(port: int) -> str | None:
    text = _fetch_metrics(port)
    return text if text and 'joinery_jobs_waiting{lane="source"}' in text else None


def _queue_due_job(stage: ServiceProcesses) -> None:
    """Queue a due job of a run that does not exist."""
    tenant = stage.create_organisation().tenant

    async def add(container: Dependencies) -> None:
        async with container[UnitOfWork].begin(tenant, builders.CALL) as tx:
            await tx[JobStore].add(NewJob("runs.execute", "source:gone", tenant, {"run": new_id("run")}))

    stage.run_with_dependencies(add)
    asyncio.run(record_backup(stage.database_url))
    stage.fetch_rows(
        "INSERT INTO sources (org, livemode, id, catalogue, name, kind, connector, config, schedule, status, licence_basis, "
        "first_party, failures, interval_factor, version, created_at, updated_at) VALUES ('org_gone', true, 'src_1', 'cat_1', "
        "'x', 'url', 'csv', '{}', '{\"interval_minutes\": 60}', 'active', 'own_data', false, 0, '{}', 1, now(), now())"
    )


def _exercise_service(stage: ServiceProcesses, at: ReceiverClient) -> tuple[str, str]:
    """Push a product, deliver it to a receiver, and search; return the run and the key."""
    tenancy = stage.create_organisation(livemode=False)
    api = tenancy.api
    endpoint = create_endpoint(api, at, ("product.created",), does={"status": 200, "text": "of-the-receiver"})
    source = api.create_source("push", config={"currency": "usd"})
    assert api.call("GET", "/v1/products?q=what-i-look-for&limit=1").status == 200
    answer = api.call("POST", f"/v1/sources/{source}/records", {"records": [build_record("A1")]}, traceparent=PARENT)
    assert answer.status in (200, 201, 202), answer.body
    run = str(answer.json()["id"])
    assert api.wait_for_end(run)["status"] == "succeeded"

    sent = endpoint.wait_for_delivery(lambda one: one["attempts"])
    assert sent["status"] == "succeeded", sent["attempts"]
    return run, str(api.secret)


def test_one_trace_connects_the_request_and_the_delivery(observed: ObservedService) -> None:
    def delivered() -> list[ReceivedSpan]:
        found = [span for span in observed.list_spans("joinery-worker") if span.name == "webhook delivery"]
        return found if observed.list_spans("joinery-api") else []

    [delivery] = wait_until(delivered, "spans are exported")
    spans = {span.span: span for span in observed.collector.spans()}
    job = spans[delivery.parent]
    request = wait_until(
        lambda: {span.span: span for span in observed.collector.spans()}.get(job.parent), "the request's span"
    )
    assert {delivery.trace, job.trace, request.trace} == {PARENT[3:35]} and request.parent == PARENT[36:52]
    assert (request.name, job.name) == ("POST /v1/sources/{id}/records", "runs.execute")
    assert request.notes["http.route"] == "/v1/sources/{id}/records" and request.notes["joinery.request_id"].startswith(
        "req_"
    )
    assert request.notes["http.response.status_code"] in (200, 201, 202) and not request.failed
    assert job.notes["joinery.job.attempt"] == 1 and job.notes["joinery.job.lane"].startswith("source:src_")
    assert {job.notes["joinery.correlation_id"], delivery.notes["joinery.correlation_id"]} == {observed.run}
    assert len({span.notes["joinery.org"] for span in (request, job, delivery)}) == 1
    assert delivery.notes["server.address"] == "127.0.0.2" and delivery.notes["joinery.event.type"] == "product.created"


def test_spans_contain_no_secret_and_no_search_text(observed: ObservedService) -> None:
    searches = wait_until(
        lambda: [span for span in observed.list_spans("joinery-api") if span.name == "GET /v1/products"], "the search"
    )
    assert searches
    whole = repr([message for _, _, message in observed.collector.requests])
    assert [secret for secret in (*SECRETS, observed.secret, observed.secret[12:30]) if secret in whole] == []


def test_the_collector_receives_the_exposed_metrics(observed: ObservedService) -> None:
    observed.stage.stop(observed.scheduler)  # a process exports its metrics once more when it stops
    wait_until(
        lambda: ("joinery-scheduler", "joinery_scheduler_leading") in observed.collector.metrics(),
        "figures are exported",
    )
    [leading] = observed.collector.metrics()["joinery-scheduler", "joinery_scheduler_leading"].gauge.data_points
    assert leading.as_double in (0.0, 1.0)


def test_queries_use_exposed_metrics(observed: ObservedService) -> None:
    faults_by_place = {place: find_faults(query, observed.exposition, WORDS) for place, query in list_queries()}
    assert len(faults_by_place) > 40 and {place: found for place, found in faults_by_place.items() if found} == {}


def test_unexposed_metrics_in_queries_are_detected(observed: ObservedService) -> None:
    wrong = {
        "sum(joinery_no_such_metric)": "joinery_no_such_metric is not shown",
        'sum(joinery_runs_total{state="failed"})': "joinery_runs_total has no label state",
        'sum(joinery_runs_total{status="faild"})': "joinery_runs_total: status is never faild",
        "sum by (org) (rate(joinery_runs_total[5m]))": "nothing has the label org to group by",
        "sum(rate(joinery_pool_waiting[5m]))": "joinery_pool_waiting is a gauge: it has no rate",
    }
    assert {query: find_faults(query, observed.exposition, WORDS) for query in wrong} == {
        query: [fault] for query, fault in wrong.items()
    }
    for nonsense in ("sum(", "sum by (a", "rate(x[5y])", "x{a}", "sum joinery", "x) + (y", 'x "text"'):
        with pytest.raises(ValueError):
            find_faults(nonsense, observed.exposition, WORDS)


def test_no_metric_identifies_a_tenant(observed: ObservedService) -> None:
    labels = {label for series in observed.exposition.series.values() for label in series}
    assert labels <= {
        "method",
        "route",
        "status",
        "le",
        "kind",
        "outcome",
        "stream",
        "lane",
        "tick",
        "place",
        "role",
        "version",
    }


def test_every_exposed_metric_is_used(observed: ObservedService) -> None:
    """By a panel or a rule: a metric that is never shown need not be counted."""
    queried = " ".join(query for _, query in list_queries())
    ours = {
        re.sub("_(total|bucket|sum|count|created)$", "", name)
        for name in observed.exposition.series
        if name.startswith("joinery")
    }
    assert {name for name in ours if name not in queried} == set()


def test_every_alert_has_its_entry_in_the_runbook() -> None:
    page = (ROOT / "docs/runbook.md").read_text("utf-8")
    entries = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    assert entries == [rule["alert"] for rule in load_rules()]
    for rule in load_rules():
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_rules_fire_when_they_should() -> None:
    for command in (
        ["check", "rules", "deploy/prometheus/joinery.rules.yml"],
        ["test", "rules", "tests/telemetry/rules_test.yml"],
    ):
        done = subprocess.run(["promtool", *command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_and_panels_explain_themselves() -> None:
    for rule in load_rules():
        assert rule["labels"]["severity"] in ("page", "ticket") and rule["annotations"].keys() == {
            "summary",
            "description",
            "runbook",
        }
    assert len({rule["alert"] for rule in load_rules()}) == len(load_rules())
    places = [tuple(panel["gridPos"].values()) for panel in load_panels()]
    assert len(set(places)) == len(places) == len({panel["title"] for panel in load_panels()})
