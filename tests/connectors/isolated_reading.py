"""Reads files with the file connector in a separate process with limited memory."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024

_PROGRAM = """
import json, resource, sys
from pathlib import Path
from connectors.csv.connector import SPEC
from connectors.sdk import BadData
from connectors.sdk.testing import FakeContext
most = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (most, most))
before = resource.getrusage(resource.RUSAGE_SELF)
rows, message = 0, None
try:
    for table in SPEC.open().parse_tables(FakeContext(), Path(sys.argv[1])):
        for row in table.rows:
            rows += 1
except BadData as error:
    message = str(error)
after = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([rows, message, (after.ru_maxrss - before.ru_maxrss) // 1024, after.ru_utime - before.ru_utime]))
"""


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Result of a read: number of rows, message of BadData, memory in MiB and CPU seconds."""

    rows: int
    message: str | None
    mib: int
    seconds: float


def read_isolated(content: bytes, folder: Path, most: int = 1024 * MIB) -> ReadResult:
    """Read the bytes. Fails if the process crashes or raises another error than BadData."""
    path = folder / "snapshot"
    path.write_bytes(content)
    command = [sys.executable, "-c", _PROGRAM, str(path), str(most)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ReadResult(*json.loads(ended.stdout.splitlines()[-1]))
