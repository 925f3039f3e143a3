"""Work folders are removed after the work, or after a crash by the next process."""

import os
import subprocess
import sys
from pathlib import Path

from adapters.files.workspaces import FileWorkspaces

CRASH = (
    "import os, sys; from pathlib import Path; from adapters.files.workspaces import FileWorkspaces\n"
    "with FileWorkspaces(Path(sys.argv[1])).create_folder() as folder:\n"
    "    (folder / 'snapshot').write_bytes(b'x'); os._exit(1)"
)


def test_a_folder_is_removed_after_its_work(tmp_path: Path) -> None:
    workspaces = FileWorkspaces(tmp_path)
    with workspaces.create_folder() as one, workspaces.create_folder() as other:
        (one / "snapshot").write_bytes(b"x")
        assert one != other and one.stat().st_mode & 0o077 == 0
    assert not one.exists() and not other.exists()
    workspaces.close()
    assert list(tmp_path.iterdir()) == []


def test_folders_of_dead_processes_are_removed_and_those_of_running_ones_kept(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(root)}, check=False
    )
    (left,) = tmp_path.iterdir()
    (tmp_path / "joinery-work-link").symlink_to(root)
    (tmp_path / "joinery-work-young").mkdir()
    (tmp_path / "others").mkdir()
    living = FileWorkspaces(tmp_path)
    with living.create_folder() as folder:
        assert not left.exists()
        assert FileWorkspaces(tmp_path).delete_orphans() == 0
        assert folder.exists() and (tmp_path / "joinery-work-young").exists() and (tmp_path / "others").exists()
        os.utime(tmp_path / "joinery-work-young", (0, 0))
        assert FileWorkspaces(tmp_path).delete_orphans() == 1
    assert (root / "pyproject.toml").exists()
