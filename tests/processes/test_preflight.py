"""Preparations before a process starts."""

import subprocess
import sys

SHOW = """
import resource
from entrypoints.preflight import raise_file_limit
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), most))
raise_file_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most))
"""


def test_the_file_limit_is_raised_to_the_maximum() -> None:
    shown = subprocess.run([sys.executable, "-c", SHOW], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "True"
