"""`joinery read`: a feed is mapped and normalised without a server."""

import json
import subprocess
import sys
from pathlib import Path

CSV = """Artikel-Nr.;Bezeichnung;Breite (cm);Sitzhöhe;VK brutto;Bestand;Sonderfarbton
A-1;Stuhl Lund;48,5;46 cm;129,90;7;RAL 9010
A-2;Stuhl Aske;50;47 cm;149,00;0;
"""


def _run_read(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "entrypoints.cli.main", "read", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_file_is_printed_as_products_with_its_mapping(tmp_path: Path) -> None:
    path = tmp_path / "feed.csv"
    path.write_text(CSV, encoding="utf-8")
    done = _run_read(path, "--json", "--currency", "eur", "--decimal", "comma")
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    (mapping,) = read["mappings"]
    fields = {column["column"]: column["field"] for column in mapping["columns"]}
    assert fields["Artikel-Nr."] == "sku"
    assert fields["Sitzhöhe"] == "dimensions.seat_height"
    assert fields["Breite (cm)"] == "dimensions.width"
    assert all(0 < column["confidence"] <= 1 for column in mapping["columns"])
    products = {product["key"]: product for product in read["products"]}
    assert products["A-1"]["data"]["title"] == "Stuhl Lund"
    (variant,) = products["A-1"]["variants"]
    assert variant["data"]["dimensions"]["seat_height"]["given"] == {"value": 46, "unit": "cm"}
    assert variant["offers"][0]["price"] == 12990
    assert read["rows"] == 2
    assert read["failure"] is None


def test_the_summary_shows_columns_counts_and_problems(tmp_path: Path) -> None:
    path = tmp_path / "feed.csv"
    path.write_text(CSV.replace("129,90", "auf Anfrage?!"), encoding="utf-8")
    done = _run_read(path, "--currency", "eur")
    assert done.returncode == 0, done.stderr
    assert "dimensions.seat_height" in done.stdout
    assert "rows 2, products 2, variants 2, offers 2" in done.stdout
    assert "line 2, VK brutto" in done.stdout


def test_a_file_without_a_key_is_reported_with_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "feed.csv"
    path.write_text("Flux,Zorp\n1,2\n3,4\n", encoding="utf-8")
    done = _run_read(path, "--json")
    assert done.returncode == 1
    read = json.loads(done.stdout)
    assert {column["column"] for column in read["mappings"][0]["unmapped"]} == {"Flux", "Zorp"}
    assert "SKU" in read["failure"]


def test_a_missing_file_is_reported_in_one_sentence(tmp_path: Path) -> None:
    done = _run_read(tmp_path / "none.csv")
    assert done.returncode == 1
    assert done.stderr.strip() == f"joinery: The file {tmp_path / 'none.csv'} does not exist."
