"""Docker build context: it contains all copied files, and the wheel built from it is complete."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.utils import exclude_paths

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
PACKAGES = ("domain", "ports", "adapters", "connectors", "entrypoints")
SITE = Path("entrypoints/site/html")
SDK = tuple(f"connectors/sdk/{name}" for name in ("pyproject.toml", "README.md", "LICENSE"))
"""Those of the distribution joinery-sdk."""
GENERATED = (".venv", "build", "dist", "*.egg-info", ".git", ".*_cache", ".joinery*", "**/__pycache__", ".hypothesis")


def list_context(patterns: list[str]) -> set[Path]:
    """The files that Docker sends to the builder, relative to the repository's root."""
    paths = exclude_paths(str(ROOT), patterns)
    return {Path(path) for path in paths if (ROOT / path).is_file()}


def read_ignored_patterns() -> list[str]:
    lines = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text("utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def list_copied_sources() -> Iterator[str]:
    """Sources of COPY instructions that come from the context, not from another stage."""
    for line in DOCKERFILE.read_text("utf-8").splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and not any(word.startswith("--from") for word in words):
            yield from (word for word in words[1:-1] if not word.startswith("--"))


def build_wheel(sources: set[Path], folder: Path) -> Path:
    """Build a wheel from a copy of these files; return the folder that it is unpacked to."""
    source = folder / "source"
    for path in sources:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, source / path)
    command = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), "."]
    subprocess.run([sys.executable, *command], cwd=source, check=True, capture_output=True, timeout=400)
    [wheel] = folder.glob("joinery-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


@pytest.mark.parametrize("source", sorted({*list_copied_sources()}))
def test_the_context_holds_every_copied_source(source: str) -> None:
    sent = list_context(read_ignored_patterns())
    assert any(path == Path(source) or Path(source) in path.parents for path in sent)


def test_the_context_holds_nothing_that_is_not_copied() -> None:
    copied = {Path(source) for source in list_copied_sources()}
    stray = {
        path for path in list_context(read_ignored_patterns()) if path not in copied and not copied & {*path.parents}
    }
    # The client always sends these two files, which the daemon reads.
    assert stray <= {Path("deploy/Dockerfile"), Path("deploy/Dockerfile.dockerignore"), Path("Dockerfile")}


@pytest.mark.slow
def test_the_wheel_from_the_context_is_complete(tmp_path: Path) -> None:
    copied = {Path(source) for source in list_copied_sources()}
    installed = build_wheel(
        {path for path in list_context(read_ignored_patterns()) if path in copied or copied & {*path.parents}}, tmp_path
    )
    packed = {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
    site = {path for path in packed if path.is_relative_to(SITE)}
    modules = {path for path in packed - site if not path.parts[0].endswith(".dist-info")}
    tree = {path for path in list_context([*GENERATED, str(SITE), *SDK]) if path.parts[0] in PACKAGES}
    assert modules == tree
    assert [path for path in tree if (ROOT / path).read_bytes() != (installed / path).read_bytes()] == []
    assert any(path.match("licenses/LICENSE") for path in packed)
    for page in ("index", "changelog", "guides/webhooks", "reference/webhooks", "errors/not_found", "search"):
        assert SITE / f"{page}.html" in site
    assert len([*(installed / SITE).glob("inside/decisions/*.html")]) == len([*(ROOT / "docs/decisions").glob("*.md")])
    read = "from entrypoints.site.site import Site; print(Site('http://x', 'http://x').read('/docs/quickstart')[0])"
    command, environment = [sys.executable, "-P", "-c", read], {"PYTHONPATH": str(installed)}
    answer = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert answer.stdout.strip() == "text/html; charset=utf-8"


def test_the_image_installs_from_the_locks_alone() -> None:
    installs = DOCKERFILE.read_text("utf-8").replace("\\\n", " ").replace("&&", "\n").splitlines()
    commands = [line for line in installs if "pip install" in line]
    assert commands
    for command in commands:
        assert "--require-hashes" in command or "--no-deps" in command
        assert "--no-build-isolation" in command or "--no-binary" not in command
