"""Metrics of a worker: job attempts, runs by result, webhook requests."""

from entrypoints.metrics import LONG_BOUNDS, Counts, Durations, Metrics


class WorkerMetrics(Metrics):
    """Implementation of ports.metrics.WorkMetrics; labels are fixed words, so that the number of series is bounded."""

    def __init__(self) -> None:
        self._jobs = Counts("joinery_job_attempts", "Ended attempts at jobs.", ("kind", "outcome"))
        self._job_seconds = Durations("joinery_job_seconds", "Time of an attempt at a job.", ("kind",), LONG_BOUNDS)
        self._runs = Counts("joinery_runs", "Ended runs.", ("stream", "status"))
        self._run_seconds = Durations(
            "joinery_run_seconds", "Time from a run's start to its end.", ("stream",), LONG_BOUNDS
        )
        self._attempts = Counts("joinery_delivery_attempts", "Ended webhook requests.", ("outcome",))
        self._attempt_seconds = Durations("joinery_delivery_seconds", "Time of a webhook request.", ())
        super().__init__(
            self._jobs, self._job_seconds, self._runs, self._run_seconds, self._attempts, self._attempt_seconds
        )

    def job_ended(self, kind: str, outcome: str, seconds: float) -> None:
        """Count an ended attempt at a job."""
        self._jobs.add(kind, outcome)
        self._job_seconds.add(seconds, kind)

    def run_ended(self, stream: str, status: str, seconds: float) -> None:
        """Count an ended run."""
        self._runs.add(stream, status)
        self._run_seconds.add(seconds, stream)

    def delivery_attempted(self, outcome: str, seconds: float) -> None:
        """Count an ended webhook request."""
        self._attempts.add(outcome)
        self._attempt_seconds.add(seconds)
