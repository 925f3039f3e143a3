"""`joinery probe`: a site looked at from the command line, with neither database nor secret."""

import json
from collections.abc import Iterator

import pytest

from entrypoints.cli.main import main
from tests.flows.feeds import FeedServer, build_catalogue, serve_feeds
from tests.flows.service_processes import FEEDS, ROOT


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[FeedServer]:
    """A site that may be looked at."""
    monkeypatch.setenv("JOINERY_ALLOW_PRIVATE_HOSTS", FEEDS)
    monkeypatch.setenv("JOINERY_PLUGINS", str(ROOT / "plugins.toml"))
    monkeypatch.delenv("JOINERY_DATABASE_URL", raising=False)
    with serve_feeds() as served:
        served.serve("/robots.txt", b"User-agent: *\nDisallow: /hidden\n", content_type="text/plain")
        yield served


def test_a_file_in_a_few_lines(vendor: FeedServer, capsys: pytest.CaptureFixture[str]) -> None:
    url = vendor.serve("/feed.csv", build_catalogue(2))
    assert main(["probe", url]) == 0
    output = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert output["site"] == url and output["estimate"].startswith("low effort to connect, reading method file")
    assert json.loads(output["proposal"])["config"] == {"url": url, "format": "csv"}


def test_a_report_as_json_that_controls_no_terminal(vendor: FeedServer, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = vendor.serve("/sheet", b"a\x1b[2J,b\nc,d\n")
    main(["probe", sheet])
    assert "\x1b" not in capsys.readouterr().out
    vendor.serve("/robots.txt", b"User-agent: *\nDisallow: /\n", content_type="text/plain")
    url = vendor.url("/hidden")
    assert main(["probe", "--json", url]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["report"]["disallowed"][0] == url and output["proposal"] is None


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "ftp://vendor.example/", "vendor.example", "http://127.0.0.2:1/"])
def test_what_cannot_be_looked_at(vendor: FeedServer, capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert main(["probe", url]) == 1
    assert capsys.readouterr().err.startswith("joinery: ")
