"""Metrics of a worker: job attempts, runs by result, webhook requests."""

from entrypoints.metrics import LONG_BUCKET_BOUNDS, CounterMetric, HistogramMetric, Metrics


class WorkerMetrics(Metrics):
    """Metrics of a worker (port WorkMetrics in ports/telemetry.py), with a fixed set of label values."""

    def __init__(self) -> None:
        self._jobs = CounterMetric("joinery_job_attempts", "Completed job attempts.", ("kind", "outcome"))
        self._job_seconds = HistogramMetric(
            "joinery_job_seconds", "Duration of a job attempt.", ("kind",), LONG_BUCKET_BOUNDS
        )
        self._runs = CounterMetric("joinery_runs", "Completed runs.", ("stream", "status"))
        self._run_seconds = HistogramMetric(
            "joinery_run_seconds", "Duration of a run.", ("stream",), LONG_BUCKET_BOUNDS
        )
        self._attempts = CounterMetric("joinery_delivery_attempts", "Completed webhook requests.", ("outcome",))
        self._attempt_seconds = HistogramMetric("joinery_delivery_seconds", "Duration of a webhook request.", ())
        super().__init__(
            self._jobs, self._job_seconds, self._runs, self._run_seconds, self._attempts, self._attempt_seconds
        )

    def record_job(self, kind: str, outcome: str, seconds: float) -> None:
        """Count a completed job attempt and record its duration."""
        self._jobs.increment(kind, outcome)
        self._job_seconds.observe(seconds, kind)

    def record_run(self, stream: str, status: str, seconds: float) -> None:
        """Count a completed run and record its duration."""
        self._runs.increment(stream, status)
        self._run_seconds.observe(seconds, stream)

    def record_delivery_attempt(self, outcome: str, seconds: float) -> None:
        """Count a completed webhook request and record its duration."""
        self._attempts.increment(outcome)
        self._attempt_seconds.observe(seconds)
