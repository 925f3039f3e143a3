"""Measurement of pauses of event loops from another process: `python -m tests.support.pauses EVERY PORT…` until its input ends.

Each port is requested for /healthz, which needs only the event loop. The output is JSON: by port, the longest wait in seconds
(null if a request failed) and the number of requests.
"""

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 120


class PauseMonitor:
    """Monitor of ports in a separate process, which this process cannot delay."""

    def __init__(self, *ports: int, every: float = 0.01) -> None:
        command = [sys.executable, "-P", "-m", "tests.support.pauses", str(every), *map(str, ports)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"watching\n"

    def longest(self) -> dict[int, float]:
        """End the monitor; return the longest wait at each port, in seconds."""
        output, _ = self._process.communicate(timeout=PATIENCE + 20)
        found = {int(port): waits for port, waits in json.loads(output).items()}
        assert all(longest is not None and count > 10 for longest, count in found.values()), found
        return {port: longest for port, (longest, _) in found.items()}

    def close(self) -> None:
        """Terminate the monitor."""
        self._process.kill()
        self._process.wait()


@contextmanager
def monitor_pauses(*ports: int, every: float = 0.01) -> Iterator[PauseMonitor]:
    """Monitor ports until the context ends."""
    pulse = PauseMonitor(*ports, every=every)
    try:
        yield pulse
    finally:
        pulse.close()


def _watch(port: int, every: float, stop: threading.Event, found: dict[int, tuple[float | None, int]]) -> None:
    longest, count = 0.0, 0
    while not stop.wait(every):
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
        except OSError:
            found[port] = (None, count)
            return
        finally:
            connection.close()
        longest, count = max(longest, time.perf_counter() - began), count + 1
        found[port] = (longest, count)


def main(every: float, ports: list[int]) -> None:
    """Monitor until the input ends."""
    stop, found = threading.Event(), dict[int, tuple[float | None, int]]()
    threads = [threading.Thread(target=_watch, args=(port, every, stop, found)) for port in ports]
    for thread in threads:
        thread.start()
    print("watching", flush=True)
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps(found))


if __name__ == "__main__":
    main(float(sys.argv[1]), [int(port) for port in sys.argv[2:]])
