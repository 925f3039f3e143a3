"""What a process and everything below it take, looked at from outside: memory in MiB (PSS), processor time in seconds."""

import os
import threading
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_EVERY = 0.2


def _fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def family(pid: int) -> list[int]:
    """The process and its descendants."""
    parents = {int(entry.name): _fields(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    found = [pid]
    for known in found:
        found += [other for other, fields in parents.items() if fields and int(fields[1]) == known]
    return found


def processor_time(pid: int) -> float:
    """Seconds that the process itself has computed."""
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def memory(pid: int) -> float:
    """MiB that the process holds, its share of what it shares."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


class Watched:
    """A process being watched; those below it come and go, and count as far as they were last seen."""

    def __init__(self, pid: int) -> None:
        self._pid, self.peak, self._seen = pid, 0.0, dict[int, float]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Watched":
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """Processor time of all of them so far."""
        return sum(self._seen.values())

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            self._look()

    def _look(self) -> None:
        pids = family(self._pid)
        self._seen |= {pid: processor_time(pid) for pid in pids}
        self.peak = max(self.peak, sum(map(memory, pids)))
