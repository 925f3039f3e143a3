"""The lock files and pyproject.toml agree, and the locks name no index, host or path."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCKS = {
    "requirements.lock": ("otlp",),
    "requirements-dev.lock": ("otlp", "embedded", "docs", "dev"),
}
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(\[[^]]*\])?==([^\s;]+)(?: ; [^\\]+)? \\$", re.MULTILINE)


def list_direct_dependencies(extras: tuple[str, ...] = ()) -> list[Requirement]:
    lines = [*PROJECT["dependencies"], *(one for extra in extras for one in PROJECT["optional-dependencies"][extra])]
    return [one for one in map(Requirement, lines) if one.name != "joinery"]


def read_pins(lock: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, _, version in _PIN.findall((ROOT / lock).read_text("utf-8"))}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_direct_dependency_is_locked_at_a_version_it_allows(lock: str) -> None:
    locked = read_pins(lock)
    for requirement in list_direct_dependencies(LOCKS[lock]):
        version = locked.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is missing from {lock}: make lock"
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement} is {version}: make lock"


def test_the_locks_agree() -> None:
    names = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock", "requirements-docs.lock")
    runtime, dev, build, docs = map(read_pins, names)
    assert runtime.items() | build.items() | docs.items() <= dev.items()
    assert "setuptools" in build
    assert docs.keys() >= {canonicalize_name(Requirement(one).name) for one in PROJECT["optional-dependencies"]["docs"]}


def test_the_runtime_lock_has_no_embedded_server() -> None:
    embedded = {canonicalize_name(Requirement(one).name) for one in PROJECT["optional-dependencies"]["embedded"]}
    assert embedded
    assert not embedded & read_pins("requirements.lock").keys()


@pytest.mark.parametrize("lock", [*LOCKS, "requirements-build.lock", "requirements-docs.lock"])
def test_every_entry_is_a_pin_with_hashes_and_nothing_else(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    assert re.findall(r"://|^\s*-(?!-hash=)|^\S+ @ ", text, re.MULTILINE) == []
    entries = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(entries) == len(_PIN.findall(text))
    for entry in re.split(r"\n(?=[^ #\n])", text)[1:]:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry


def test_no_dependency_is_declared_twice() -> None:
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for names in ([canonicalize_name(Requirement(one).name) for one in each] for each in lists):
        assert len(names) == len({*names})


def test_the_bill_of_materials_equals_the_runtime_lock(tmp_path: Path) -> None:
    made = tmp_path / "joinery.cdx.json"
    command = ["-W", "ignore", "-m", "cyclonedx_py", "requirements", "--of", "JSON", "--output-file", str(made)]
    subprocess.run([sys.executable, *command, "requirements.lock"], cwd=ROOT, check=True, capture_output=True)
    components = json.loads(made.read_text("utf-8"))["components"]
    assert {canonicalize_name(one["name"]): one["version"] for one in components} == read_pins("requirements.lock")
    assert all(one["externalReferences"][0]["hashes"] for one in components)
