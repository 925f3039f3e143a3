"""Addresses, keys and timeouts of clients: what is normalised, what is refused, and that no error contains a secret."""

import math
from typing import Any

import pytest

from entrypoints.clients.python.runtime.async_core import AsyncCore
from tests.support.shipped_clients import import_client
from tests.unit.clients.test_redirects import serve_status
from tests.unit.clients.test_typescript_runtime import RunScript, run_script

__all__ = ["run_script"]
NORMALISED = [
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


def create_core(address: str, key: str, timeout: float = 30.0) -> Any:
    return AsyncCore(address, key, version="v", agent="tests", timeout=timeout)


@pytest.mark.parametrize(("address", "key"), NORMALISED)
def test_surrounding_blanks_are_removed(address: str, key: str) -> None:
    core = create_core(address, key)
    assert (core.base_url, core.headers["Authorization"]) == ("https://api.example", "Bearer svc_live_SECRET")


@pytest.mark.parametrize(("address", "key", "named"), REFUSED)
def test_errors_do_not_contain_secrets(address: str, key: str, named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        create_core(address, key)
    assert "SECRET" not in str(caught.value)


def test_the_typescript_client_validates_settings(run_script: RunScript) -> None:
    found = run_script("settings", [{"baseUrl": address, "key": key} for address, key in NORMALISED])
    assert found == [["https://api.example", "Bearer svc_live_SECRET"]] * len(NORMALISED)
    found = run_script("settings", [{"baseUrl": address, "key": key} for address, key, _ in REFUSED])
    for (name, message), (_, _, named) in zip(found, REFUSED, strict=True):
        assert name == "TypeError" and named in message and "SECRET" not in message


def test_the_typescript_client_validates_timeouts(run_script: RunScript) -> None:
    assert run_script("timeouts") == ["completed"] * 3 + ["TypeError"] * 5


@pytest.mark.parametrize("timeout", [math.inf, 1e300, 3_000_000.0])
def test_very_long_timeouts_are_accepted(timeout: float) -> None:
    with serve_status(200) as (address, _), import_client().Joinery(address, "k", timeout=timeout) as client:
        assert client.orgs.get() == {}


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.nan])
def test_invalid_timeouts_are_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        create_core("http://x", "k", timeout)
