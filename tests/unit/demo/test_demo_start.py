"""The demo's state file, the location of its feeds, and its output."""

import asyncio
import io
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from entrypoints.demo import demonstration
from entrypoints.demo.client import DemoError, ProgressDisplay
from entrypoints.demo.demonstration import (
    ALLOWED_HOSTS_VARIABLE,
    LINDGREN,
    PORT_VARIABLE,
    QUILLMERE,
    RETAILER,
    DemoState,
    prepare_environment,
)
from entrypoints.demo.messages import (
    format_example_requests,
    format_own_feed_commands,
    format_progress,
    format_publication,
    format_summary,
)

SUCCEEDED: dict[str, Any] = {
    "status": "succeeded",
    "stage": "done",
    "stream": "catalogue",
    "stats": {"rows": 1410, "problems": 3, "products_created": 457, "variants_created": 1407, "offers_created": 2813},
    "problems": [{"problem": "unreadable"}, {"problem": "bad_check_digit"}, {"problem": "unreadable"}],
}


def test_the_state_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / RETAILER.state_file
    assert DemoState.load(path) == DemoState()
    state = DemoState(8099, "org_1", "key_1", "svc_live_x", {"A": "src_1"}, {"A": "http://127.0.0.1:8099/"})
    state.save(path)
    assert DemoState.load(path) == state
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "[]", '{"prt": 1}', "{"])
def test_an_unreadable_state_file_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / RETAILER.state_file
    path.write_text(text)
    with pytest.raises(DemoError, match="Remove it"):
        DemoState.load(path)
    assert int(prepare_environment(tmp_path)[PORT_VARIABLE])


def test_the_port_is_kept_unless_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOWED_HOSTS_VARIABLE, "files.vendor.example,10.0.0.7:8443")
    first = prepare_environment(tmp_path)
    assert first[ALLOWED_HOSTS_VARIABLE] == f"files.vendor.example,10.0.0.7:8443,127.0.0.1:{first[PORT_VARIABLE]}"
    DemoState(port=int(first[PORT_VARIABLE])).save(tmp_path / RETAILER.state_file)
    assert prepare_environment(tmp_path) == first
    with socket.create_server(("127.0.0.1", int(first[PORT_VARIABLE]))):
        assert int(prepare_environment(tmp_path)[PORT_VARIABLE]) != int(first[PORT_VARIABLE])


def test_a_start_without_preparation_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(demonstration.run_demo({"JOINERY_DATA_DIR": str(tmp_path)}))
    assert "joinery up --demo" in capsys.readouterr().out


def test_sources_have_local_urls() -> None:
    assert LINDGREN.build_source_config(81)["stock_url"] == "http://127.0.0.1:81/lindgren-falk/stock.csv"
    assert QUILLMERE.build_source_config(81) == {
        "url": "http://127.0.0.1:81/",
        "currency": "usd",
        "platform": "shopify",
        "role": "retailer",
    }


def test_progress_and_summary_are_formatted() -> None:
    assert (
        format_progress("Lindgren", SUCCEEDED).split()
        == "Lindgren succeeded 1,410 rows 457 products 3 problems".split()
    )
    waiting = {"status": "waiting", "stage": "fetch", "stats": {}, "waiting": {"detail": "The source is busy."}}
    assert "waiting: The source is busy." in format_progress("Lindgren", waiting)
    assert format_progress("Lindgren", {"status": "running", "stage": "parse", "stats": {}}).split()[1] == "parse"
    counts, problems = format_summary("Lindgren", SUCCEEDED)
    assert "457 products, 1,407 variants, 2,813 offers from 1,410 rows" in counts
    assert "3 problems: 2 unreadable, 1 bad check digit" in problems
    stock = {"status": "succeeded", "stream": "stock", "stats": {"rows": 9, "offers_changed": 12}, "problems": []}
    assert format_summary("Stock", stock)[0].endswith("stock of 12 offers from 9 rows")


def test_a_failed_run_includes_the_reason() -> None:
    failed = {
        "status": "failed",
        "stats": {},
        "error": {"code": "fetch_failed", "message": "The source answered HTTP 500."},
    }
    assert format_summary("Lindgren", failed)[0].endswith("failed: The source answered HTTP 500.")


def test_the_publication_is_described() -> None:
    shown = format_publication("Lindgren", "Demo", {"published": True, "listed": 1200})
    assert shown.startswith(
        "Lindgren, a vendor, has published 1,200 products. Demo reads them with their stock, and follows"
    )
    assert "not published" in format_publication("Lindgren", "Demo", {"published": False, "listed": 0})


def test_example_requests_are_complete() -> None:
    lines = format_example_requests("http://127.0.0.1:8080", "svc_live_x", "prod_1", "run_1", "cat_1")
    commands = [line for line in lines if line.startswith("curl")]
    assert len(commands) == 7
    assert all("Bearer svc_live_x" in line and "http://127.0.0.1:8080/v1/" in line for line in commands)
    snippet = format_own_feed_commands("http://127.0.0.1:8080", "svc_live_x")
    assert snippet[0] == "API=http://127.0.0.1:8080 KEY=svc_live_x FILE=my-feed.csv"
    assert "@" not in "".join(snippet)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_redrawn_on_a_terminal_and_appended_elsewhere() -> None:
    terminal, log = Terminal(), io.StringIO()
    for out in (terminal, log):
        board = ProgressDisplay(out)
        assert board.show(["a 1", "b 1"])
        assert not board.show(["a 1", "b 1"])
        assert board.show(["a 2", "b 1"])
    assert log.getvalue() == "a 1\nb 1\na 2\n"
    assert terminal.getvalue().endswith("\x1b[2A\r\x1b[2Ka 2\n\r\x1b[2Kb 1\n")
