"""Lets a command reach the service that runs on a data directory, by the file that its supervisor keeps there."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from entrypoints.up.directory import DataDir, locked, write_private
from entrypoints.up.errors import UpError

_SHARED: Final = "JOINERY_"


def announce(data: DataDir, env: Mapping[str, str]) -> None:
    """Write the children's `JOINERY_…` variables to run.json, for this user's eyes only."""
    shared = {name: value for name, value in env.items() if name.startswith(_SHARED)}
    write_private(data.run_file, json.dumps({"pid": os.getpid(), "environment": shared}, indent=2) + "\n")


def withdraw(data: DataDir) -> None:
    """Remove run.json."""
    data.run_file.unlink(missing_ok=True)


def attach(data_dir: Path) -> dict[str, str]:
    """The `JOINERY_…` variables of the `joinery up` that runs on the directory. Raises UpError when none does."""
    data = DataDir(data_dir.expanduser().absolute())
    if not locked(data):
        raise UpError(f"Joinery is not running on {data.path}; start it with `joinery up --data-dir {data.path}`.")
    try:
        running = json.loads(data.run_file.read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in running["environment"].items()}
    except PermissionError as error:
        raise UpError(
            f"{data.run_file} belongs to another user; run this command as the user of `joinery up`."
        ) from error
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UpError(f"Joinery on {data.path} is still starting; try again when it has told its address.") from error
