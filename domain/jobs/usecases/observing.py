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
    """Recorder of job attempts in `metrics` and `tracing`, either of which may be absent."""

    metrics: WorkMetrics | None = None
    tracing: Tracing | None = None

    @contextlib.contextmanager
    def attempt(self, job: ClaimedJob) -> Iterator[None]:
        """Record an attempt, from within its task; exceptions propagate."""
        loop = asyncio.get_running_loop()
        started, outcome = loop.time(), "done"
        try:
            with self._span(job):
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
                self.metrics.job_ended(job.kind, outcome, loop.time() - started)

    @contextlib.contextmanager
    def _span(self, job: ClaimedJob) -> Iterator[None]:
        if self.tracing is None:
            yield
            return
        with self.tracing.span(job.kind, SpanKind.CONSUMER, parent=job.trace) as span:
            span.note(
                joinery__job__id=job.id,
                joinery__job__kind=job.kind,
                joinery__job__lane=job.lane,
                joinery__job__attempt=job.attempt,
                joinery__org=job.tenant.org,
                joinery__livemode=job.tenant.livemode,
            )
            if isinstance(run := job.args.get("run"), str):
                span.note(joinery__correlation_id=run)
            yield
