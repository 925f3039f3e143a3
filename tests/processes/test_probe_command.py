"""`joinery probe`: website check on the command line, without database and secret."""

import json
from collections.abc import Iterator

import pytest

from entrypoints.cli.main import main
from tests.flows.feeds import FeedServer, build_catalogue, serve_feeds
from tests.flows.service_processes import FEEDS, ROOT


@pytest.fixture
def vendor_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FeedServer]:
    """Run a website on a permitted address."""
    monkeypatch.setenv("JOINERY_ALLOW_PRIVATE_HOSTS", FEEDS)
    monkeypatch.setenv("JOINERY_PLUGINS", str(ROOT / "plugins.toml"))
    monkeypatch.delenv("JOINERY_DATABASE_URL", raising=False)
    with serve_feeds() as served:
        served.serve("/robots.txt", b"User-agent: *\nDisallow: /hidden\n", content_type="text/plain")
        yield served


def test_a_file_is_summarised(vendor_server: FeedServer, capsys: pytest.CaptureFixture[str]) -> None:
    url = vendor_server.serve("/feed.csv", build_catalogue(2))
    assert main(["probe", url]) == 0
    output = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert output["site"] == url and output["estimate"].startswith("low effort to connect, reading method file")
    assert json.loads(output["proposal"])["config"] == {"url": url, "format": "csv"}


def test_the_json_report_contains_no_control_characters(
    vendor_server: FeedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = vendor_server.serve("/sheet", b"a\x1b[2J,b\nc,d\n")
    main(["probe", sheet])
    assert "\x1b" not in capsys.readouterr().out
    vendor_server.serve("/robots.txt", b"User-agent: *\nDisallow: /\n", content_type="text/plain")
    url = vendor_server.url("/hidden")
    assert main(["probe", "--json", url]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["report"]["disallowed"][0] == url and output["proposal"] is None


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "ftp://vendor.example/", "vendor.example", "http://127.0.0.2:1/"])
def test_unreachable_sites_are_reported(
    vendor_server: FeedServer, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    assert main(["probe", url]) == 1
    assert capsys.readouterr().err.startswith("joinery: ")
