"""Plugins are loaded one by one, and a broken one is reported and never fatal."""

import re
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from adapters.pluggy.allowlist import BUILT_IN, Allowlist, AllowlistEntry, AllowlistError, is_in_range, read_allowlist
from adapters.pluggy.loader import LoadedPlugins, PluginReport, load_plugins
from adapters.pluggy.spec_validation import find_spec_faults
from connectors.sdk import ConnectorSpec

GOOD = """
from joinery_sdk import ConnectorSpec, hookimpl
class Opened: ...
def spec(name):
    return ConnectorSpec(name=name, title="T", kinds=frozenset({"api"}), streams=frozenset({"catalogue"}), can_fetch=True,
                         config_schema={"type": "object"}, open=Opened)
"""
HOOK = "@hookimpl\ndef joinery_connectors():\n    return [spec(%r)]\n"

Install = Callable[..., AllowlistEntry]
NUMBERS = count()

SHIPPED = ["api", "bigcommerce", "csv", "json_ld", "shopify", "shopify-admin", "woocommerce"]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a distribution with one module and an entry point."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(name: str, source: str, version: str = "1.2.0", allowed: str = "") -> AllowlistEntry:
        target = f"plugin_{next(NUMBERS)}"
        (tmp_path / f"{target}.py").write_text(source)
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[joinery.connectors]\nmain = {target}\n")
        return AllowlistEntry(distribution=name, version=SpecifierSet(allowed), hosts=frozenset({"api.example"}))

    return run


def load_all(*entries: AllowlistEntry) -> tuple[LoadedPlugins, dict[str, PluginReport]]:
    """Load the built-in and the given plugins."""
    result = load_plugins(Allowlist((*BUILT_IN.entries, *entries)), release_version="9.9")
    return result, {report.plugin: report for report in result.reports}


def test_built_in_plugins_are_loaded() -> None:
    result, reports = load_all()
    assert sorted(result.connectors) == SHIPPED
    assert {report.state for name, report in reports.items() if name.startswith("connectors.")} == {"loaded"}
    assert result.connectors["csv"].distribution == "joinery"
    assert result.connectors["csv"].version == "9.9"


def test_a_valid_plugin_is_loaded(install: Install) -> None:
    result, reports = load_all(install("good-one", GOOD + HOOK % "good"))
    assert reports["good-one"] == PluginReport(
        "good-one", "loaded", None, "good-one", "1.2.0", connectors=("good",), hosts=("api.example",)
    )
    assert result.connectors["good"].hosts == {"api.example"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nowhere_to_be_found", "cannot be imported: ModuleNotFoundError"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit"),
        ("def broken(:", "cannot be imported: SyntaxError"),
        (GOOD + (HOOK % "x").replace("joinery_connectors", "joinery_conectors"), "hook joinery_connectors is invalid"),
        (GOOD + (HOOK % "x").replace("connectors():", "connectors(extra):"), "cannot be registered|hook is wrong"),
        (GOOD, "no hook joinery_connectors"),
        (GOOD + "@hookimpl\ndef joinery_connectors():\n    return None\n", "no hook|does not return a list"),
        (GOOD + "@hookimpl\ndef joinery_connectors():\n    return [1]\n", "not a ConnectorSpec"),
        (GOOD + "@hookimpl\ndef joinery_connectors():\n    1 / 0\n", "hook joinery_connectors failed: ZeroDivisionError"),
        (GOOD + HOOK % "csv", "'csv' is provided by both joinery 9.9 and bad-one 1.2.0"),
        (GOOD + "@hookimpl\ndef joinery_connectors():\n    return [spec('a'), spec('a')]\n", "defined twice"),
        (GOOD + HOOK % "Not A Name", "name must consist of lower-case"),
    ],
    ids=[
        "import", "exit", "syntax", "misspelt", "arguments", "none",
        "nothing", "no-spec", "raises", "taken", "twice", "name",
    ],
)  # fmt: skip
def test_broken_plugins_do_not_affect_others(install: Install, source: str, reason: str) -> None:
    bad = install("bad-one", source)
    good = install("good-one", GOOD + HOOK % "good")
    result, reports = load_all(bad, good)
    assert reports["bad-one"].state == "broken"
    assert re.search(reason, reports["bad-one"].reason or "")
    assert sorted(result.connectors) == sorted([*SHIPPED, "good"])


def test_duplicate_connector_names_are_refused(install: Install) -> None:
    first, second = install("one", GOOD + HOOK % "acme"), install("two", GOOD + HOOK % "acme")
    result, reports = load_all(first, second)
    assert result.connectors["acme"].distribution == "one"
    assert "one 1.2.0" in (reports["two"].reason or "")
    assert "two 1.2.0" in (reports["two"].reason or "")


def test_unlisted_plugins_are_never_imported(install: Install, tmp_path: Path) -> None:
    install("stranger", f"open({str(tmp_path / 'ran')!r}, 'w')")
    _, reports = load_all()
    assert reports["stranger"].state == "not_listed"
    assert not (tmp_path / "ran").exists()


def test_disabled_plugins_are_never_imported(install: Install, tmp_path: Path) -> None:
    entry = install("stranger", f"open({str(tmp_path / 'ran')!r}, 'w')")
    _, reports = load_all(AllowlistEntry(distribution=entry.distribution, enabled=False))
    assert reports["stranger"].state == "disabled"
    assert not (tmp_path / "ran").exists()


def test_versions_and_absence(install: Install) -> None:
    entry = install("good-one", GOOD + HOOK % "good", version="2.1", allowed=">=1,<2")
    _, reports = load_all(entry, AllowlistEntry(distribution="nobody"))
    assert "2.1 is installed; plugins.toml allows <2,>=1" in (reports["good-one"].reason or "")
    assert "not installed" in (reports["nobody"].reason or "")


@pytest.mark.parametrize(
    ("version", "wanted", "inside"),
    [
        ("1.2", "", True), ("1.2", ">=1.2,<2", True), ("2.0", ">=1.2,<2", False), ("2.0rc1", "<2", False),
        ("1.10", ">1.9", True), ("1.2.0", "==1.2", True), ("1.2.3", "==1.2.*", True), ("1.20", "==1.2.*", False),
        ("1.2.3", "!=1.2.*", False), ("odd", ">=1", False), ("odd", "", True), ("1.4.2", "~=1.4", True),
    ],
)  # fmt: skip
def test_ranges(version: str, wanted: str, inside: bool) -> None:
    assert is_in_range(version, SpecifierSet(wanted)) is inside


def test_the_list_in_the_repository() -> None:
    listed = read_allowlist(Path(__file__).parents[2] / "plugins.toml")
    modules = ["csv", "shopify", "api", "woocommerce", "bigcommerce", "json_ld"]
    assert [entry.module for entry in listed.entries] == [f"connectors.{name}" for name in modules]
    assert read_allowlist(Path("/nowhere/plugins.toml")) is BUILT_IN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[plugin]", "not TOML"),
        ("[other]\n", "must contain only"),
        ('[[plugin]]\nversion = ">=1"\n', "either module or distribution"),
        ('[[plugin]]\nmodule = "os"\n', "built-in"),
        ('[[plugin]]\ndistribution = "a"\n', "hosts must list"),
        ('[[plugin]]\ndistribution = "a"\nhosts = ["x"]\nversion = "latest"\n', "range"),
        ('[[plugin]]\ndistribution = "a"\nhosts = ["x"]\nversion = 1\n', "range"),
        ('[[plugin]]\ndistribution = "a"\nhosts = ["x"]\nversion = [">=1"]\n', "range"),
        ('[[plugin]]\ndistribution = "a"\nhosts = ["x"]\nenabled = "yes"\n', "true or false"),
        ('[[plugin]]\ndistribution = "a"\nhosts = "x"\n', "list of host names"),
        ('[[plugin]]\ndistribution = "a"\nhost = ["x"]\n', "unknown key host"),
    ],
)
def test_an_invalid_plugin_list_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "plugins.toml"
    path.write_text(text)
    with pytest.raises(AllowlistError, match=message):
        read_allowlist(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"api": 3}, "version 3 of the connector interface"),
        ({"title": " "}, "title is missing"),
        ({"kinds": frozenset({"ftp"})}, "kinds"),
        ({"address_settings": "url"}, "must be sets of setting names"),
        ({"neutral_settings": frozenset({1})}, "must be sets of setting names"),
        ({"address_settings": frozenset({"url"}), "neutral_settings": frozenset({"url"})}, "must be disjoint"),
        ({"streams": frozenset()}, "streams"),
        ({"open": None}, "open is not callable"),
        ({"config_schema": {"type": "objekt"}}, "not of type object"),
        ({"config_schema": {"type": "object", "properties": {"a": {"type": "objekt"}}}}, "not a valid JSON Schema"),
        ({"config_schema": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}}, "Draft 2020-12"),
        ({"credentials_schema": {"type": "object", "$ref": "https://x.example/s"}}, "a reference to another document"),
        ({"config_schema": None}, "config_schema is not a JSON Schema"),
    ],
)
def test_faulty_plugins_are_reported(change: dict[str, object], message: str) -> None:
    values: dict[str, object] = {
        "name": "acme", "title": "Acme", "kinds": frozenset({"api"}), "streams": frozenset({"catalogue"}),
        "can_fetch": True, "config_schema": {"type": "object"}, "open": object,
    }  # fmt: skip
    assert find_spec_faults(ConnectorSpec(**values)) == []  # type: ignore[arg-type]
    assert message in "; ".join(find_spec_faults(ConnectorSpec(**{**values, **change})))  # type: ignore[arg-type]
