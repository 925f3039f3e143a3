"""Comparison of expected values with the JSON output of `joinery read`."""

import json
from collections import Counter
from pathlib import Path

from benchmarks.expected_readings import evaluate_folder, format_table


def test_a_folder_is_evaluated(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "SKU,Name,Width (cm),Price,EAN\nA-1,Table,180,899.00,123\nA-2,Chair,,x,\nA-3,Shelf,90,5.00,\n"
    )
    data = {"dimensions": {"width": {"hundredths_in": 7087}, "height": None}, "gtin": "4006381333931"}
    expectation = {
        "file": "a.csv",
        "arguments": ["--currency", "eur"],
        "products": [
            {"key": "A-1", "data": {"title": "Table"}, "variants": [{"key": "A-1", "data": data, "offers": [{"price": 89900}]}]},
            {"key": "A-2", "data": {"title": "Stool"}, "variants": [{"data": {"sku": "A-2", "colour": "red"}, "offers": [{"price": 5}]}]},
            {"key": "A-9"},
        ],
    }  # fmt: skip
    (tmp_path / "a.expected.json").write_text(json.dumps(expectation))
    ((name, values),) = evaluate_folder(tmp_path)
    assert name == "a.csv"
    assert Counter((value.family, value.verdict) for value in values) == {
        ("items", "right"): 4, ("items", "lost"): 1, ("items", "wrong"): 1, ("title", "right"): 1, ("title", "wrong"): 1,
        ("dimensions", "right"): 2, ("gtin", "lost"): 1, ("price", "right"): 1, ("price", "reported"): 1, ("colour", "lost"): 1,
        ("sku", "right"): 1,
    }  # fmt: skip
    assert len(list(format_table(values))) == 9
