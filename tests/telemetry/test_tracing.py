"""Spans in memory and over OTLP, exported metrics, and unresponsive collectors."""

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otlp is not installed")

from adapters.otlp.collector import OtlpCollector as Where
from adapters.otlp.metrics import OtlpMetrics
from adapters.otlp.telemetry import OtlpTelemetry
from domain.kernel.trace_context import TraceContext, parse_trace_context
from entrypoints.errors import SettingsError
from entrypoints.factories import create_telemetry
from entrypoints.metrics import CounterMetric, HistogramMetric, Metrics
from entrypoints.settings import read_settings
from ports.telemetry import SpanKind, Tracing
from tests.http.application import run_application
from tests.support.collector import ReceivedSpan, run_collector
from tests.support.memory.tracing import MemoryTracing

ROOT = Path(__file__).parents[2]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ListSpans = Callable[[], list[ReceivedSpan]]


@contextmanager
def open_memory_tracing() -> Iterator[tuple[Tracing, ListSpans]]:
    tracing = MemoryTracing()

    def list_spans() -> list[ReceivedSpan]:
        return [
            ReceivedSpan(
                "", one.name, 0, one.context.trace, one.context.span, one.parent.span if one.parent else "",
                {**one.notes, **({"error.type": one.failure} if one.failure else {})},
                [(one.link.trace, one.link.span)] if one.link else [], one.failure is not None,
            )
            for one in tracing.spans if one.ended and one.context.sampled
        ]  # fmt: skip

    yield tracing, list_spans


@contextmanager
def open_otlp_tracing() -> Iterator[tuple[Tracing, ListSpans]]:
    with run_collector() as collector:
        telemetry = OtlpTelemetry(collector.url, "joinery-tests", "1")

        def list_spans() -> list[ReceivedSpan]:
            telemetry.tracing.close()
            return collector.spans()

        yield telemetry.tracing, list_spans


@pytest.fixture(params=[open_memory_tracing, open_otlp_tracing], ids=["memory", "otlp"])
def recorder(request: Any) -> Iterator[tuple[Tracing, ListSpans]]:
    with request.param() as made:
        yield made


def test_a_span_is_exported_with_its_parent_and_attributes(recorder: tuple[Tracing, ListSpans]) -> None:
    tracing, list_spans = recorder
    assert tracing.get_current() is None
    with tracing.open_span("GET /v1/things", SpanKind.SERVER, parent_context=PARENT) as outer:
        outer.set_attributes(http__response__status_code=200, joinery__org="org_1", left_out=None)
        inside = tracing.get_current()
        with tracing.open_span("work", SpanKind.CONSUMER, parent_context=inside, linked_context=PARENT) as inner:
            inner.mark_failed("timeout")
        assert tracing.get_current() == inside
    assert tracing.get_current() is None
    first, second = sorted(list_spans(), key=lambda one: one.name)
    assert parse_trace_context(inside) == TraceContext(first.trace, first.span, True)
    assert (first.trace, first.parent) == (PARENT[3:35], PARENT[36:52])
    assert (second.trace, second.parent) == (first.trace, first.span)
    assert first.notes == {"http.response.status_code": 200, "joinery.org": "org_1"} and not first.failed
    assert (
        second.failed and second.notes == {"error.type": "timeout"} and second.links == [(PARENT[3:35], PARENT[36:52])]
    )


def test_an_exception_fails_the_span_without_its_text(recorder: tuple[Tracing, ListSpans]) -> None:
    tracing, list_spans = recorder
    with pytest.raises(ValueError), tracing.open_span("work", SpanKind.CONSUMER):
        raise ValueError("svc_rk_live_secret")
    [span] = list_spans()
    assert span.failed and span.notes == {"error.type": "ValueError"} and span.parent == ""


@pytest.mark.parametrize(
    "rubbish",
    [
        "", "00", PARENT.upper(), PARENT[:-1], PARENT + "-more", "ff" + PARENT[2:], f"00-{'0' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'0' * 16}-01", f"{PARENT}, {PARENT}", "\0" * 55, "x" * 100_000, PARENT.replace("0af7", "0äf7"),
    ],
)  # fmt: skip
def test_an_invalid_parent_begins_a_new_trace(rubbish: str) -> None:
    assert parse_trace_context(rubbish) is None


def test_later_versions_and_flags_are_understood() -> None:
    assert parse_trace_context("cc" + PARENT[2:] + "-what-comes") == parse_trace_context(PARENT)
    assert parse_trace_context(PARENT[:-2] + "03") == parse_trace_context(PARENT)
    unsampled = parse_trace_context(PARENT[:-2] + "00")
    assert unsampled is not None and not unsampled.sampled and str(unsampled) == PARENT[:-2] + "00"


def test_an_unsampled_span_is_not_exported_but_propagated(recorder: tuple[Tracing, ListSpans]) -> None:
    tracing, list_spans = recorder
    with tracing.open_span("GET", SpanKind.SERVER, parent_context=PARENT[:-2] + "00"):
        handed_on = parse_trace_context(tracing.get_current())
    assert handed_on is not None and handed_on.trace == PARENT[3:35] and not handed_on.sampled
    assert list_spans() == []


async def _measure_spans(tracing: Tracing, count: int) -> list[float]:
    """Return the durations of `count` spans in seconds, including the loop's iterations between them, longest first."""
    durations = []
    for _ in range(count):
        began = time.perf_counter()
        with tracing.open_span("GET /v1/things", SpanKind.SERVER) as span:
            span.set_attributes(joinery__org="org_1")
        await asyncio.sleep(0)
        durations.append(time.perf_counter() - began)
    return sorted(durations, reverse=True)


@pytest.mark.asyncio
@pytest.mark.parametrize("trouble", ["hangs", "gone"])
async def test_a_failing_collector_delays_nothing(trouble: str, caplog: pytest.LogCaptureFixture) -> None:
    """More spans than the queue holds; dozens of spans would take seconds if the export of a batch blocked them."""
    with run_collector() as collector:
        collector.hangs.set()
        url = collector.url if trouble == "hangs" else "http://127.0.0.1:9"
        telemetry = OtlpTelemetry(url, "joinery-tests", "1")
        figures = telemetry.create_export(Metrics().collect)
        figures.start()
        durations = await _measure_spans(telemetry.tracing, 12_000)
        assert durations[5] < 3.0, "a busy machine may interrupt some"
        began = time.perf_counter()
        await asyncio.gather(telemetry.close(), asyncio.to_thread(figures.close))
        assert time.perf_counter() - began < 20, "a process waits only briefly"
    assert len([one for one in caplog.records if "opentelemetry" in one.name]) <= 6, "errors are logged rarely"


def test_exported_figures_equal_the_metrics() -> None:
    counts, durations = (
        CounterMetric("joinery_things", "Things.", ("kind",)),
        HistogramMetric("joinery_thing_seconds", "T.", ("kind",)),
    )
    metrics = Metrics(counts, durations)
    metrics.add_gauge("joinery_open", "Open things.", lambda: 3)
    counts.increment("a")
    counts.increment("a")
    for seconds in (0.0005, 0.3, 99.0):
        durations.observe(seconds, "a")
    with run_collector() as collector:
        export = OtlpMetrics(Where(collector.url, "joinery-tests", "1", "i"), metrics.collect, interval_seconds=0.05)
        export.start()
        export.close()
        exported = {name: metric for (_, name), metric in collector.metrics().items()}
    [total] = exported["joinery_things"].sum.data_points
    assert (
        total.as_double == 2
        and exported["joinery_things"].sum.is_monotonic
        and total.attributes[0].value.string_value == "a"
    )
    assert exported["joinery_open"].gauge.data_points[0].as_double == 3
    [point] = exported["joinery_thing_seconds"].histogram.data_points
    assert point.count == 3 and point.sum == pytest.approx(99.3005) and not point.HasField("min")
    assert point.bucket_counts[0] == 1 and point.bucket_counts[-1] == 1 and sum(point.bucket_counts) == 3
    assert len(point.explicit_bounds) == len(point.bucket_counts) - 1 and exported["joinery_thing_seconds"].unit == "s"


def test_nothing_is_imported_without_a_collector() -> None:
    """Only the adapter imports OpenTelemetry, and only functions import the adapter."""
    named = re.compile(r"^(?:from|import) (?:adapters\.otlp|opentelemetry)", re.MULTILINE)
    layers = [
        path
        for layer in ("domain", "ports", "adapters", "connectors", "entrypoints")
        for path in (ROOT / layer).rglob("*.py")
    ]
    assert {path.parent.name for path in layers if named.search(path.read_text("utf-8"))} == {"otlp"}


def test_a_missing_exporter_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings(
        {"JOINERY_DATABASE_URL": "x", "JOINERY_SECRET": "s" * 32, "JOINERY_OTLP_URL": "http://localhost:4318"}
    )
    monkeypatch.setitem(sys.modules, "adapters.otlp.telemetry", None)
    with pytest.raises(SettingsError, match=r"pip install 'joinery\[otlp\]'"):
        create_telemetry(settings, "api")


@pytest.mark.parametrize(
    "url", ["localhost:4318", "ftp://here", "http://", "http://me:secret@here", "http://here?a=b", "http://here:x"]
)
def test_invalid_addresses_are_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(SettingsError, match="JOINERY_OTLP_URL must be") as refused:
        read_settings({"JOINERY_DATABASE_URL": "x", "JOINERY_SECRET": "s" * 32, "JOINERY_OTLP_URL": url})
    assert "secret" not in str(refused.value)


@pytest.mark.asyncio
async def test_requests_are_answered_while_the_collector_hangs() -> None:
    with run_collector() as collector:
        collector.hangs.set()
        telemetry = OtlpTelemetry(collector.url, "joinery-tests", "1")
        async with run_application(tracing=telemetry.tracing) as application:
            client = await application.create_client("Elm")
            began = time.perf_counter()
            answers = await asyncio.gather(*(client.get("/v1/sources") for _ in range(30)))
            assert {answer.status for answer in answers} == {200} and time.perf_counter() - began < 8
        await telemetry.close()
    assert collector.requests == []
