"""Every SQL file belongs to a store (docs/architecture.md)."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_sql_file_has_its_adapter() -> None:
    folder = ROOT / "adapters/postgres"
    assert {path.stem for path in folder.glob("sql/*.sql")} <= {path.stem for path in folder.glob("*.py")}
