"""`python -m entrypoints.clients FOLDER`: writes the files that are shipped."""

import sys
from pathlib import Path

from entrypoints.areas.registry import AREAS
from entrypoints.clients.shipped import shipped
from entrypoints.operations.openapi import document
from entrypoints.operations.table import Table

_ADDRESS = "http://127.0.0.1:8080"
"""Where `joinery up` serves; the collection's address to begin with."""


def main(folder: Path) -> None:
    """Write them all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in shipped(document(Table(AREAS), _ADDRESS, _ADDRESS)).items():
        (folder / name).write_bytes(body)
        sys.stdout.write(f"{folder / name}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
