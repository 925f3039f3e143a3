"""The image's build gets every file that it copies, and the wheel built from its context is the wheel of the whole tree."""

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
GENERATED = (".venv", "build", "dist", "*.egg-info", ".git", ".*_cache", ".joinery*", "**/__pycache__", ".hypothesis")


def context(patterns: list[str]) -> set[Path]:
    """The files that Docker sends to the builder, relative to the repository's root."""
    paths = exclude_paths(str(ROOT), patterns)
    return {Path(path) for path in paths if (ROOT / path).is_file()}


def ignored() -> list[str]:
    lines = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text("utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def copied_sources() -> Iterator[str]:
    """Sources of COPY instructions that come from the context, not from another stage."""
    for line in DOCKERFILE.read_text("utf-8").splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and not any(word.startswith("--from") for word in words):
            yield from (word for word in words[1:-1] if not word.startswith("--"))


def built_wheel(files: set[Path], folder: Path) -> dict[str, bytes]:
    """Content by name of the wheel built from a copy of these files; RECORD follows from the others."""
    source = folder / "source"
    for path in files:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, source / path)
    command = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), "."]
    subprocess.run([sys.executable, *command], cwd=source, check=True, capture_output=True, timeout=300)
    [wheel] = folder.glob("joinery-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


@pytest.mark.parametrize("source", sorted({*copied_sources()}))
def test_the_context_holds_every_copied_source(source: str) -> None:
    sent = context(ignored())
    assert any(path == Path(source) or Path(source) in path.parents for path in sent)


def test_the_context_holds_nothing_that_is_not_copied() -> None:
    copied = {Path(source) for source in copied_sources()}
    stray = {path for path in context(ignored()) if path not in copied and not copied & {*path.parents}}
    # The client always sends these two: the daemon reads them.
    assert stray <= {Path("deploy/Dockerfile"), Path("deploy/Dockerfile.dockerignore"), Path("Dockerfile")}


def test_the_wheel_from_the_context_is_that_of_the_tree(tmp_path: Path) -> None:
    copied = {Path(source) for source in copied_sources()}
    sent = {path for path in context(ignored()) if path in copied or copied & {*path.parents}}
    (tmp_path / "sent").mkdir()
    (tmp_path / "whole").mkdir()
    from_context = built_wheel(sent, tmp_path / "sent")
    from_tree = built_wheel(context([*GENERATED]), tmp_path / "whole")
    assert from_context.keys() == from_tree.keys()
    assert [name for name, content in from_tree.items() if from_context[name] != content] == []
    assert any(name.endswith("/licenses/LICENSE") for name in from_tree)


def test_the_image_installs_from_the_locks_alone() -> None:
    installs = DOCKERFILE.read_text("utf-8").replace("\\\n", " ").replace("&&", "\n").splitlines()
    commands = [line for line in installs if "pip install" in line]
    assert commands
    for command in commands:
        assert "--require-hashes" in command or "--no-deps" in command
        assert "--no-build-isolation" in command or "--no-binary" not in command
