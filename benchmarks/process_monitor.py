"""Monitor of the memory (PSS, in MiB) and CPU time of a process and its descendants."""

import os
import threading
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_INTERVAL = 0.2


def _read_stat_fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def find_process_tree(pid: int) -> list[int]:
    """Return the process and its descendants."""
    stat_fields_by_pid = {
        int(entry.name): _read_stat_fields(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()
    }
    process_tree = [pid]
    for parent in process_tree:
        process_tree += [child for child, fields in stat_fields_by_pid.items() if fields and int(fields[1]) == parent]
    return process_tree


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of the process itself."""
    fields = _read_stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def read_memory(pid: int) -> float:
    """Return the memory of the process in MiB, with its proportion of shared memory."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


class ProcessMonitor:
    """Context manager that samples a process tree; processes that end count with their last sample.

    Attributes:
        peak_memory: Highest total memory in MiB.
    """

    def __init__(self, pid: int) -> None:
        self._pid, self.peak_memory, self._cpu_seconds_by_pid = pid, 0.0, dict[int, float]()
        self._stop_event = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "ProcessMonitor":
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_event.set()
        self._thread.join()

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of all processes up to the last sample."""
        return sum(self._cpu_seconds_by_pid.values())

    def _watch(self) -> None:
        while not self._stop_event.wait(_INTERVAL):
            self._sample()

    def _sample(self) -> None:
        pids = find_process_tree(self._pid)
        self._cpu_seconds_by_pid |= {pid: read_cpu_seconds(pid) for pid in pids}
        self.peak_memory = max(self.peak_memory, sum(map(read_memory, pids)))
