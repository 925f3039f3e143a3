"""Addresses, keys and timeouts that clients are given: what is mended, what is refused, and that no refusal shows a secret."""

import math
from typing import Any

import pytest

from entrypoints.clients.python.runtime.async_core import AsyncCore
from tests.support.shipped_clients import imported
from tests.unit.clients.test_redirects import served
from tests.unit.clients.test_typescript_runtime import RunScript, run_script

__all__ = ["run_script"]
WELL = [
    ("https://api.example/", "svc_live_SECRET\n"),
    (" https://api.example\n", "  svc_live_SECRET\r\n"),
]
REFUSED = [
    ("https://api.example", "svc_live_\nSECRET", "API key"),
    ("https://api.example", "svc_live_é✓SECRET", "API key"),
    ("https://api.example", "svc live SECRET", "API key"),
    ("https://api.example", "svc\x7fSECRET", "API key"),
    ("https://api.example", " \n", "API key"),
    ("https://user:SECRET@api.example", "k", "password"),
    ("https://SECRET@api.example", "k", "password"),
    ("https://user:a/SECRET@api.example/v2", "k", "password"),
]


def made(address: str, key: str, timeout: float = 30.0) -> Any:
    return AsyncCore(address, key, version="v", agent="tests", timeout=timeout)


@pytest.mark.parametrize(("address", "key"), WELL)
def test_blanks_around_are_taken_off(address: str, key: str) -> None:
    core = made(address, key)
    assert (core.base_url, core.headers["Authorization"]) == ("https://api.example", "Bearer svc_live_SECRET")


@pytest.mark.parametrize(("address", "key", "named"), REFUSED)
def test_refusals_do_not_show_secrets(address: str, key: str, named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        made(address, key)
    assert "SECRET" not in str(caught.value)


def test_typescript_does_the_same(run_script: RunScript) -> None:
    found = run_script("settings", [{"baseUrl": address, "key": key} for address, key in WELL])
    assert found == [["https://api.example", "Bearer svc_live_SECRET"]] * len(WELL)
    found = run_script("settings", [{"baseUrl": address, "key": key} for address, key, _ in REFUSED])
    for (name, message), (_, _, named) in zip(found, REFUSED, strict=True):
        assert name == "TypeError" and named in message and "SECRET" not in message


def test_timeouts_of_typescript(run_script: RunScript) -> None:
    assert run_script("timeouts") == ["well"] * 3 + ["TypeError"] * 5


@pytest.mark.parametrize("timeout", [math.inf, 1e300, 3_000_000.0])
def test_timeouts_without_end(timeout: float) -> None:
    with served(200) as (address, _), imported().Joinery(address, "k", timeout=timeout) as client:
        assert client.orgs.get() == {}


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.nan])
def test_timeouts_that_are_none(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        made("http://x", "k", timeout)
