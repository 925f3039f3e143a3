"""What is looked after before anything starts."""

import subprocess
import sys

SHOW = """
import resource
from entrypoints.preflight import allow_many_files
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), most))
allow_many_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most))
"""


def test_as_many_files_as_may_be_had() -> None:
    shown = subprocess.run([sys.executable, "-c", SHOW], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "True"
