"""Spans, alike in memory and on their way to a collector; figures as the collector hears them; collectors that hang."""

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

from adapters.otlp.collector import Collector as Where
from adapters.otlp.metrics import OtlpMetrics
from adapters.otlp.telemetry import OtlpTelemetry
from domain.kernel.trace_context import TraceContext, context_of
from entrypoints.errors import SettingsError
from entrypoints.factories import telemetry_of
from entrypoints.metrics import Counts, Durations, Metrics
from entrypoints.settings import from_environment
from ports.telemetry import SpanKind, Tracing
from tests.http.fakes import running
from tests.support.collector import Told, collecting
from tests.support.memory.tracing import MemoryTracing

ROOT = Path(__file__).parents[2]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
Seen = Callable[[], list[Told]]


@contextmanager
def kept() -> Iterator[tuple[Tracing, Seen]]:
    tracing = MemoryTracing()

    def seen() -> list[Told]:
        return [
            Told(
                "", one.name, 0, one.context.trace, one.context.span, one.parent.span if one.parent else "",
                {**one.notes, **({"error.type": one.failure} if one.failure else {})},
                [(one.link.trace, one.link.span)] if one.link else [], one.failure is not None,
            )
            for one in tracing.spans if one.ended and one.context.sampled
        ]  # fmt: skip

    yield tracing, seen


@contextmanager
def sent() -> Iterator[tuple[Tracing, Seen]]:
    with collecting() as collector:
        telemetry = OtlpTelemetry(collector.url, "joinery-tests", "1")

        def seen() -> list[Told]:
            telemetry.tracing.close()
            return collector.spans()

        yield telemetry.tracing, seen


@pytest.fixture(params=[kept, sent], ids=["memory", "otlp"])
def way(request: Any) -> Iterator[tuple[Tracing, Seen]]:
    with request.param() as made:
        yield made


def test_a_span_is_told_with_its_place_and_what_was_said_of_it(way: tuple[Tracing, Seen]) -> None:
    tracing, seen = way
    assert tracing.current() is None
    with tracing.span("GET /v1/things", SpanKind.SERVER, parent=PARENT) as outer:
        outer.note(http__response__status_code=200, joinery__org="org_1", left_out=None)
        inside = tracing.current()
        with tracing.span("work", SpanKind.CONSUMER, parent=inside, link=PARENT) as inner:
            inner.failed("timeout")
        assert tracing.current() == inside
    assert tracing.current() is None
    first, second = sorted(seen(), key=lambda one: one.name)
    assert context_of(inside) == TraceContext(first.trace, first.span, True)
    assert (first.trace, first.parent) == (PARENT[3:35], PARENT[36:52])
    assert (second.trace, second.parent) == (first.trace, first.span)
    assert first.notes == {"http.response.status_code": 200, "joinery.org": "org_1"} and not first.failed
    assert (
        second.failed and second.notes == {"error.type": "timeout"} and second.links == [(PARENT[3:35], PARENT[36:52])]
    )


def test_an_exception_makes_it_failed_and_goes_on_without_its_text(way: tuple[Tracing, Seen]) -> None:
    tracing, seen = way
    with pytest.raises(ValueError), tracing.span("work", SpanKind.CONSUMER):
        raise ValueError("svc_rk_live_secret")
    [told] = seen()
    assert told.failed and told.notes == {"error.type": "ValueError"} and told.parent == ""


@pytest.mark.parametrize(
    "rubbish",
    [
        "", "00", PARENT.upper(), PARENT[:-1], PARENT + "-more", "ff" + PARENT[2:], f"00-{'0' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'0' * 16}-01", f"{PARENT}, {PARENT}", "\0" * 55, "x" * 100_000, PARENT.replace("0af7", "0äf7"),
    ],
)  # fmt: skip
def test_rubbish_begins_a_trace_of_its_own(rubbish: str) -> None:
    assert context_of(rubbish) is None


def test_later_versions_and_flags_are_understood() -> None:
    assert context_of("cc" + PARENT[2:] + "-what-comes") == context_of(PARENT)
    assert context_of(PARENT[:-2] + "03") == context_of(PARENT)
    unsampled = context_of(PARENT[:-2] + "00")
    assert unsampled is not None and not unsampled.sampled and str(unsampled) == PARENT[:-2] + "00"


def test_what_the_caller_does_not_record_is_not_told_but_handed_on(way: tuple[Tracing, Seen]) -> None:
    tracing, seen = way
    with tracing.span("GET", SpanKind.SERVER, parent=PARENT[:-2] + "00"):
        handed_on = context_of(tracing.current())
    assert handed_on is not None and handed_on.trace == PARENT[3:35] and not handed_on.sampled
    assert seen() == []


async def _many(tracing: Tracing, count: int) -> float:
    """The longest of so many spans, in seconds, and of the loop's turns between them."""
    longest = 0.0
    for _ in range(count):
        began = time.perf_counter()
        with tracing.span("GET /v1/things", SpanKind.SERVER) as span:
            span.note(joinery__org="org_1")
        await asyncio.sleep(0)
        longest = max(longest, time.perf_counter() - began)
    return longest


@pytest.mark.asyncio
@pytest.mark.parametrize("trouble", ["hangs", "gone"])
async def test_a_collector_in_trouble_holds_nobody_up(trouble: str, caplog: pytest.LogCaptureFixture) -> None:
    """More spans than the queue takes; a span that waited for the collector would take seconds."""
    with collecting() as collector:
        collector.hangs.set()
        url = collector.url if trouble == "hangs" else "http://127.0.0.1:9"
        telemetry = OtlpTelemetry(url, "joinery-tests", "1")
        figures = telemetry.export(Metrics().collect)
        figures.start()
        assert await _many(telemetry.tracing, 12_000) < 3.0
        began = time.perf_counter()
        await asyncio.gather(telemetry.close(), asyncio.to_thread(figures.close))
        assert time.perf_counter() - began < 20, "a process waits a moment at most"
    assert len([one for one in caplog.records if "opentelemetry" in one.name]) <= 6, "told now and then"


def test_figures_are_told_as_metrics_has_them() -> None:
    counts, durations = (
        Counts("joinery_things", "Things.", ("kind",)),
        Durations("joinery_thing_seconds", "T.", ("kind",)),
    )
    metrics = Metrics(counts, durations)
    metrics.gauge("joinery_open", "Open things.", lambda: 3)
    counts.add("a")
    counts.add("a")
    for seconds in (0.0005, 0.3, 99.0):
        durations.add(seconds, "a")
    with collecting() as collector:
        export = OtlpMetrics(Where(collector.url, "joinery-tests", "1", "i"), metrics.collect, every=0.05)
        export.start()
        export.close()
        told = {name: metric for (_, name), metric in collector.metrics().items()}
    [total] = told["joinery_things"].sum.data_points
    assert (
        total.as_double == 2
        and told["joinery_things"].sum.is_monotonic
        and total.attributes[0].value.string_value == "a"
    )
    assert told["joinery_open"].gauge.data_points[0].as_double == 3
    [point] = told["joinery_thing_seconds"].histogram.data_points
    assert point.count == 3 and point.sum == pytest.approx(99.3005) and not point.HasField("min")
    assert point.bucket_counts[0] == 1 and point.bucket_counts[-1] == 1 and sum(point.bucket_counts) == 3
    assert len(point.explicit_bounds) == len(point.bucket_counts) - 1 and told["joinery_thing_seconds"].unit == "s"


def test_nothing_is_imported_without_a_collector() -> None:
    """Modules name OpenTelemetry nowhere but in its adapter, and the adapter nowhere but inside a function."""
    named = re.compile(r"^(?:from|import) (?:adapters\.otlp|opentelemetry)", re.MULTILINE)
    layers = [
        path
        for layer in ("domain", "ports", "adapters", "connectors", "entrypoints")
        for path in (ROOT / layer).rglob("*.py")
    ]
    assert {path.parent.name for path in layers if named.search(path.read_text("utf-8"))} == {"otlp"}


def test_a_collector_that_nobody_can_speak_to_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = from_environment(
        {"JOINERY_DATABASE_URL": "x", "JOINERY_SECRET": "s" * 32, "JOINERY_OTLP_URL": "http://localhost:4318"}
    )
    monkeypatch.setitem(sys.modules, "adapters.otlp.telemetry", None)
    with pytest.raises(SettingsError, match=r"pip install 'joinery\[otlp\]'"):
        telemetry_of(settings, "api")


@pytest.mark.parametrize(
    "url", ["localhost:4318", "ftp://here", "http://", "http://me:secret@here", "http://here?a=b", "http://here:x"]
)
def test_addresses_that_are_none_are_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(SettingsError, match="JOINERY_OTLP_URL must be") as refused:
        from_environment({"JOINERY_DATABASE_URL": "x", "JOINERY_SECRET": "s" * 32, "JOINERY_OTLP_URL": url})
    assert "secret" not in str(refused.value)


@pytest.mark.asyncio
async def test_requests_are_answered_while_the_collector_hangs() -> None:
    with collecting() as collector:
        collector.hangs.set()
        telemetry = OtlpTelemetry(collector.url, "joinery-tests", "1")
        async with running(tracing=telemetry.tracing) as world:
            client = await world.client("Elm")
            began = time.perf_counter()
            answers = await asyncio.gather(*(client.get("/v1/sources") for _ in range(30)))
            assert {answer.status for answer in answers} == {200} and time.perf_counter() - began < 8
        await telemetry.close()
    assert collector.requests == []
