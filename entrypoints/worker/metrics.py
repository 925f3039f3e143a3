"""What a worker counts: attempts at jobs, runs by how they end, POSTs to receivers."""

from entrypoints.metrics import LONG_BOUNDS, Counts, Durations, Metrics


class WorkerMetrics(Metrics):
    """ports.metrics.WorkMetrics. Kinds, streams, statuses and outcomes are words of ours, so that series are bounded."""

    def __init__(self) -> None:
        self._jobs = Counts("joinery_job_attempts", "Attempts at jobs that are over.", ("kind", "outcome"))
        self._job_seconds = Durations("joinery_job_seconds", "Time of an attempt at a job.", ("kind",), LONG_BOUNDS)
        self._runs = Counts("joinery_runs", "Runs that have ended.", ("stream", "status"))
        self._run_seconds = Durations(
            "joinery_run_seconds", "Time from a run's start to its end.", ("stream",), LONG_BOUNDS
        )
        self._attempts = Counts("joinery_delivery_attempts", "POSTs to receivers that are over.", ("outcome",))
        self._attempt_seconds = Durations("joinery_delivery_seconds", "Time of a POST to a receiver.", ())
        super().__init__(
            self._jobs, self._job_seconds, self._runs, self._run_seconds, self._attempts, self._attempt_seconds
        )

    def job_ended(self, kind: str, outcome: str, seconds: float) -> None:
        """One attempt at a job is over."""
        self._jobs.add(kind, outcome)
        self._job_seconds.add(seconds, kind)

    def run_ended(self, stream: str, status: str, seconds: float) -> None:
        """One run is over."""
        self._runs.add(stream, status)
        self._run_seconds.add(seconds, stream)

    def delivery_attempted(self, outcome: str, seconds: float) -> None:
        """One POST is over."""
        self._attempts.add(outcome)
        self._attempt_seconds.add(seconds)
