"""`joinery_sdk` is an alias of the modules of connectors.sdk, even if another package of that name is installed or imported."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import walk_packages

import pytest

import connectors.sdk
from adapters.pluggy import loader
from adapters.pluggy.allowlist import Allowlist, AllowlistEntry
from adapters.pluggy.loader import PluginReport, load_plugins
from connectors.sdk.spec import API
from connectors.sdk.version import VERSION

ROOT = Path(__file__).parents[2]
SURROUNDINGS = {**os.environ, "PYTHONPATH": str(ROOT)}
HOOK = """
from {sdk} import ConnectorSpec, hookimpl
@hookimpl
def joinery_connectors():
    return [ConnectorSpec(name="named", title="T", kinds=frozenset({{"api"}}), streams=frozenset({{"stock"}}), can_fetch=True,
                          config_schema={{"type": "object"}}, open=object)]
"""
OTHER_MODULE = """
class ConnectorSpec:
    def __init__(self, **_): ...
def hookimpl(function):
    return function
"""

Install = Callable[..., PluginReport]


@pytest.fixture
def sdk_alias() -> None:
    """Install the SDK under its public name."""
    loader.install_sdk_alias()


@pytest.fixture
def load_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a plugin of one module, load it and return its report."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(source: str, module: str, needs: str = "") -> PluginReport:
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        required = f"Requires-Dist: {needs}\n" if needs else ""
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n{required}")
        (info / "entry_points.txt").write_text(f"[joinery.connectors]\nmain = {module}\n")
        [loaded] = load_plugins(Allowlist((AllowlistEntry(distribution=module),)), release_version="1").reports[:1]
        return loaded

    return run


def test_every_module_is_the_same(sdk_alias: None) -> None:
    assert importlib.import_module("joinery_sdk") is connectors.sdk
    found = [module.name for module in walk_packages(connectors.sdk.__path__, "connectors.sdk.")]
    assert len(found) > 25
    for name in found:
        home = importlib.import_module(name)
        assert importlib.import_module(name.replace("connectors.sdk", "joinery_sdk", 1)) is home
        assert home.__spec__ is not None
        assert (home.__name__, home.__spec__.name) == (name, name), "its own name stays, so that its imports work"


def test_the_order_of_imports_does_not_matter() -> None:
    program = """
from adapters.pluggy import loader
loader.install_sdk_alias()
import joinery_sdk.trees
from joinery_sdk.readers import json_records
import connectors.sdk.trees, connectors.sdk.readers.json_records
assert joinery_sdk.trees is connectors.sdk.trees and json_records is connectors.sdk.readers.json_records
assert joinery_sdk.BadData is connectors.sdk.errors.BadData
"""
    subprocess.run([sys.executable, "-W", "error", "-P", "-c", program], cwd=ROOT, env=SURROUNDINGS, check=True)


def test_modules_outside_the_sdk_are_missing(sdk_alias: None) -> None:
    with pytest.raises(ModuleNotFoundError, match="joinery_sdk.nowhere"):
        importlib.import_module("joinery_sdk.nowhere")


def test_another_copy_is_replaced(
    sdk_alias: None, load_plugin: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a copy that was imported before plugins are loaded."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "joinery_sdk"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "joinery_sdk.py").write_text(OTHER_MODULE)
    assert importlib.import_module("joinery_sdk") is not connectors.sdk
    loaded = load_plugin(HOOK.format(sdk="joinery_sdk"), "beside_another_copy")
    assert (loaded.state, loaded.reason) == ("loaded", None)
    assert importlib.import_module("joinery_sdk") is connectors.sdk


def test_the_internal_name_works_too(load_plugin: Install) -> None:
    loaded = load_plugin(f"from connectors.sdk import Table\n{HOOK.format(sdk='connectors.sdk')}", "inside_name")
    assert (loaded.state, loaded.connectors) == ("loaded", ("named",))


@pytest.mark.parametrize(
    "needs",
    ["joinery-sdk", "joinery_sdk>=2,<3", "Joinery.SDK (>=2.0)", "joinery-sdk[json-ld]~=2.0", "joinery-sdk ~=2.0.0",
     'joinery-sdk>=99; extra == "later"', "other>=99"],
)  # fmt: skip
def test_a_plugin_for_a_supported_sdk_is_loaded(needs: str) -> None:
    assert loader.find_unmet_range([needs]) is None


@pytest.mark.parametrize("wanted", [">=2.99", "<2", "~=3.0", "~=1.0.7", "==1.0.5"])
def test_a_plugin_for_an_unsupported_sdk_is_refused(load_plugin: Install, wanted: str) -> None:
    assert loader.find_unmet_range(["other", f"joinery-sdk[json-ld]{wanted}"]) == wanted


def test_a_plugin_for_a_later_sdk_is_omitted(load_plugin: Install) -> None:
    loaded = load_plugin("raise RuntimeError", "for_a_later_kit", "joinery-sdk>=2.99,<3")
    assert loaded.state == "broken"
    assert loaded.reason == f"the plugin requires joinery-sdk <3,>=2.99; this Joinery has {VERSION}"


def test_the_version_names_the_interface() -> None:
    assert VERSION.partition(".")[0] == str(API)
    assert connectors.sdk.__version__ == VERSION
