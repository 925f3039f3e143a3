"""One noun, one file name in every layer (docs/architecture.md): no orphan, no stray name."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
AREAS = {
    path.name for path in (ROOT / "domain").iterdir() if path.is_dir() and path.name not in ("kernel", "__pycache__")
}

# What the layers have beside areas, and what it is for.
MACHINERY = {
    "ports": {"clock", "codec", "connectors", "datasets", "factors", "feed_readers", "idempotency", "images", "limits", "mailer", "maintenance", "match_index", "identity_providers", "metrics", "models", "names", "objects", "one_time_codes", "outbound", "packing", "parsing", "passkeys", "passwords", "pushes", "queue", "schemas",
              "signals", "spool", "store", "telemetry", "tracing", "unit_of_work", "web", "workload", "workspaces"},
    "adapters/postgres": {"catalogue_batch", "catalogue_lines", "catalogue_loading", "catalogue_overlay", "columns", "coordinator_store", "table", "tables", "catalogue_query", "catalogue_rows", "errors", "event_reader", "factors", "idempotency", "images", "leadership",
                          "dump", "listing", "match_index", "migrate", "partitions", "privileges", "pushes", "session", "signals", "sqlfile", "unit_of_work", "maintenance", "erasing",
                          "cluster", "log", "shards", "webhook_deliveries", "delivery_places", "network", "workload"},
    "adapters/postgres/nodes": {"connecting", "node_pool", "pool", "router"},
    "adapters/memory": {"catalogue_overlay", "clock", "factors", "feed_readers", "idempotency", "image_uses", "limits", "match_index", "match_queue", "row_fingerprints", "objects", "pushes", "queue", "names", "network", "signals", "table", "tracing", "unit_of_work", "web", "webhook_deliveries", "workload"},
    "adapters/wire": {"category_rules", "codec", "cursors", "event_types", "problems", "products", "records", "resource", "schema", "versions"},
    "entrypoints/areas": {"area", "registry"},
}  # fmt: skip


def _names(folder: str) -> set[str]:
    return {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__"}


def test_every_file_of_a_layer_is_an_area_or_known_machinery() -> None:
    for folder, machinery in MACHINERY.items():
        assert _names(folder) - machinery - AREAS == set(), folder
        assert machinery <= _names(folder), f"{folder}: machinery that is gone"


def test_every_store_has_its_port_and_stands_on_both_adapters() -> None:
    stored = _names("adapters/postgres") & AREAS
    special = stored & _names("ports")
    assert special == _names("adapters/memory") & AREAS
    for plain in stored - special:
        declared = (ROOT / "adapters/postgres" / f"{plain}.py").read_text("utf-8")
        assert "class " not in declared and "def " not in declared, f"{plain}: a table alone needs no port"


def test_every_sql_file_has_its_adapter() -> None:
    sql = {path.stem for path in (ROOT / "adapters/postgres/sql").glob("*.sql")}
    assert sql <= _names("adapters/postgres")


def test_every_http_area_has_its_wire_and_domain() -> None:
    for area in _names("entrypoints/areas") & AREAS:
        assert area in _names("adapters/wire")
        usecases = ROOT / "domain" / area / "usecases"
        assert usecases.with_suffix(".py").exists() or (usecases / "__init__.py").exists(), area
