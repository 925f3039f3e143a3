"""Every store stands on both adapters, and every file of SQL belongs to one (docs/architecture.md)."""

from pathlib import Path

from adapters.memory.unit_of_work import STORES as MEMORY
from adapters.postgres.unit_of_work import STORES as POSTGRES

ROOT = Path(__file__).parents[2]


def test_every_store_has_both_adapters() -> None:
    assert MEMORY.ports == POSTGRES.ports


def test_every_sql_file_has_its_adapter() -> None:
    folder = ROOT / "adapters/postgres"
    assert {path.stem for path in folder.glob("sql/*.sql")} <= {path.stem for path in folder.glob("*.py")}
