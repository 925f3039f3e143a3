"""Memory and CPU time of processes, as reported by Linux."""

import os
from collections.abc import Iterator
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def list_descendants(pid: int) -> Iterator[int]:
    """Return the descendants of the process."""
    try:
        listed = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return
    for child in map(int, " ".join(listed).split()):
        yield child
        yield from list_descendants(child)


def peak_memory(pid: int) -> int:
    """Return the peak memory of the process in MiB; 0 after its end."""
    return _memory(pid, "VmHWM:")


def memory(pid: int) -> int:
    """Return the memory of the process in MiB; 0 after its end."""
    return _memory(pid, "VmRSS:")


def _memory(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith(name)), 0)


def processor_seconds(pid: int) -> float:
    """Return the CPU time of the process in seconds; 0 after its end."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS
