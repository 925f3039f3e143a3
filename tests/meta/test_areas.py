"""Every area has its parts: stores on both adapters, JSON and use cases of its operations (docs/architecture.md)."""

from pathlib import Path

from adapters.memory.unit_of_work import STORES as MEMORY
from adapters.postgres.unit_of_work import STORES as POSTGRES
from entrypoints.areas.registry import AREAS

ROOT = Path(__file__).parents[2]


def test_every_store_has_both_adapters() -> None:
    assert MEMORY.ports == POSTGRES.ports


def test_every_sql_file_has_its_adapter() -> None:
    folder = ROOT / "adapters/postgres"
    assert {path.stem for path in folder.glob("sql/*.sql")} <= {path.stem for path in folder.glob("*.py")}


def test_every_area_of_operations_has_its_json() -> None:
    wire = {path.stem for path in (ROOT / "adapters/wire").glob("*.py")}
    assert {area.name for area in AREAS} <= wire
