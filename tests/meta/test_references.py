"""Docstrings and docs cite only pages, headings and tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CITATION = re.compile(r"\b(docs/[a-z0-9_/-]+\.md)(?:#([a-z0-9-]+))?")


def _list_anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_cited_page_and_heading_exists() -> None:
    layers = ("domain", "ports", "adapters", "connectors", "entrypoints", "benchmarks", "tests")
    sources = [path for layer in layers for path in (ROOT / layer).rglob("*.py")] + list(ROOT.glob("*.md"))
    missing = []
    for source in sources:
        for page, anchor in _CITATION.findall(source.read_text("utf-8")):
            if not (ROOT / page).is_file() or (anchor and anchor not in _list_anchors(ROOT / page)):
                missing.append(f"{source.relative_to(ROOT)}: {page}#{anchor}")
    assert not missing


def test_every_test_that_docs_name_exists() -> None:
    referenced = {
        (page.name, test)
        for page in (ROOT / "docs").rglob("*.md")
        for test in re.findall(r"`(tests/[A-Za-z0-9_/.]*)`", page.read_text("utf-8"))
    }
    assert len([test for page, test in referenced if page == "threat-model.md"]) > 30
    assert sorted((page, test) for page, test in referenced if not (ROOT / test).exists()) == []
