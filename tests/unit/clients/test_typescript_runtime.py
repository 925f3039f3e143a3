"""The TypeScript client behaves like the Python client: retries, encoded addresses and tables."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from domain.runs.model import OPEN_STATUSES
from entrypoints.clients.distribution import list_error_classes
from entrypoints.clients.python.runtime import errors, tables
from entrypoints.http.execute import UNSTORED_STATUSES
from entrypoints.operations.codes import CODES
from entrypoints.operations.query_string import QueryParser
from tests.support.operation_table import load_operation_table
from tests.support.shipped_clients import unpack_tarball
from tests.unit.clients.retry_cases import CASES

SCRIPT = Path(__file__).with_name("typescript_runtime.mjs")
RunScript = Callable[..., Any]


@pytest.fixture(scope="module")
def run_script(tmp_path_factory: pytest.TempPathFactory) -> RunScript:
    """Return a function that runs a command of the script in the runtime."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    package = unpack_tarball(tmp_path_factory.mktemp("node")) / "node_modules" / "joinery-client"

    def run(command: str, argument: Any = None) -> Any:
        argv = [node, str(SCRIPT), str(package), command]
        process = subprocess.run(argv, input=json.dumps(argument), capture_output=True, text=True, timeout=60)
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    return run


def test_requests_are_retried_by_outcome(run_script: RunScript) -> None:
    found = run_script("retries", [asdict(case) for case in CASES])
    wrong = [
        str(case)
        for case, (sent, well) in zip(CASES, found, strict=True)
        if (sent, well) != (1 + case.is_retried, case.is_retried)
    ]
    assert wrong == []


def test_values_of_lists_round_trip(run_script: RunScript) -> None:
    """The service reads exactly what the client writes, for any characters in the codes."""
    operation = next(row for row in load_operation_table() if row.id == "catalogue.list_offers")
    codes = ["A-1", "4,5 mm", "back\\slash", "\\,", "a b&c=d", "é", "100 %+"]
    url = run_script("addresses", {"sku": codes})
    assert QueryParser(operation).parse(url.partition("?")[2]) == ({"sku": codes}, ())


def test_both_languages_have_the_same_tables(run_script: RunScript) -> None:
    found = run_script("tables")
    assert found.pop("BY_STATUS") == {str(status): kind.__name__ for status, kind in errors.BY_STATUS.items()}
    own = {name: value for name, value in vars(tables).items() if name.isupper()}
    assert found == json.loads(json.dumps(own)) and len(own) >= 7


def test_the_tables_agree_with_the_service() -> None:
    assert set(tables.OPEN_RUN_STATUSES) == OPEN_STATUSES
    assert CODES[tables.RATE_LIMITED].status == 429 and CODES[tables.IN_PROGRESS].status == 409
    assert {code.status for code in CODES.values() if code.status >= 500} <= set(tables.RETRIED_STATUSES)
    assert not set(tables.KEPT_STATUSES) & UNSTORED_STATUSES


def test_an_error_explains_how_to_restart(run_script: RunScript) -> None:
    name, message = run_script("hint")
    assert name == "CursorExpired" and errors.CursorExpired.hint in message
    assert list_error_classes().keys() >= {"ConnectionFailed", "WebhookVerificationError", "NotFound"}


def test_the_documentation_lists_the_retried_statuses() -> None:
    docs = Path(__file__).parents[3] / "docs"
    [row] = [line for line in (docs / "errors.md").read_text().splitlines() if line.startswith("| no answer, ")]
    statuses = ", ".join(map(str, tables.RETRIED_STATUSES))
    assert row.startswith(f"| no answer, {statuses} | yes")
    assert (
        f"after {statuses}, 429 `{tables.RATE_LIMITED}` and 409\n`{tables.IN_PROGRESS}`"
        in (docs / "clients.md").read_text()
    )
