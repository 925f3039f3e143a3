"""Metrics and tracing of job attempts."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from domain.jobs.model import ClaimedJob
from domain.kernel.errors import LeaseLost
from ports.telemetry import SpanKind, Tracing, WorkMetrics


@dataclass(frozen=True, slots=True)
class JobObserver:
    """Recorder of job attempts in metrics and traces, if these are enabled."""

    metrics: WorkMetrics | None = None
    tracing: Tracing | None = None

    @contextlib.contextmanager
    def observe_attempt(self, job: ClaimedJob) -> Iterator[None]:
        """Record the duration and outcome of the job attempt that runs inside the context; exceptions are raised again."""
        loop = asyncio.get_running_loop()
        started, outcome = loop.time(), "done"
        try:
            with self._trace_attempt(job):
                yield
        except LeaseLost:
            outcome = "lost"
            raise
        except asyncio.CancelledError:
            outcome = "stopped"
            raise
        except BaseException:
            outcome = "failed"
            raise
        finally:
            if self.metrics is not None:
                self.metrics.record_job(job.kind, outcome, loop.time() - started)

    @contextlib.contextmanager
    def _trace_attempt(self, job: ClaimedJob) -> Iterator[None]:
        if self.tracing is None:
            yield
            return
        with self.tracing.open_span(job.kind, SpanKind.CONSUMER, parent_context=job.trace) as span:
            span.set_attributes(
                joinery__job__id=job.id,
                joinery__job__kind=job.kind,
                joinery__job__lane=job.lane,
                joinery__job__attempt=job.attempt,
                joinery__org=job.tenant.org,
                joinery__livemode=job.tenant.livemode,
            )
            if isinstance(run := job.args.get("run"), str):
                span.set_attributes(joinery__correlation_id=run)
            yield
