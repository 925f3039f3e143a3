"""Build of the documentation site with Sphinx: pages of docs/, the API reference, events and error codes."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from shutil import move, rmtree
from tempfile import TemporaryDirectory
from typing import Any, Final

from jinja2 import Environment, PackageLoader, select_autoescape
from sphinx.application import Sphinx

from adapters.api_json.event_schemas import EVENT_SCHEMAS
from domain.events.model import TYPES
from domain.webhooks.samples import TYPES_WITH_SAMPLE
from entrypoints.areas.registry import AREAS
from entrypoints.operations.codes import CODES, FIELD_CODES
from entrypoints.operations.openapi import REQUEST_HEADERS, build_problem_example, list_error_codes, list_header_names
from entrypoints.operations.query_string import list_query_parameters
from entrypoints.operations.table import OperationTable
from entrypoints.site.calls import describe_rate_class, format_client_examples, format_curl, format_json
from entrypoints.site.event_samples import create_event_sample
from entrypoints.site.schemas import (
    CALLER_DESCRIPTIONS,
    build_response_example,
    describe_type,
    render_description,
    render_fields,
    render_inline,
)
from entrypoints.site.site import BASE_URL, BUILT_FOLDER, DOCS_URL, POLICY_FILE, build_hash_source

ROOT = Path(__file__).parents[2]
_TABS = {"sh": "curl", "python": "Python", "ts": "TypeScript"}
"""Titles of the tabs by language; adjacent code blocks in these languages become tabs."""
_FENCE = r"```({})\b[^\n]*\n(?:(?!```)[^\n]*\n)*```\n"
_SAMPLE = re.compile(_FENCE.format("sh|python|ts"))
_ADJACENT_SAMPLES = re.compile(rf"^{_FENCE.format('sh|python')}(?:\n{_FENCE.format('python|ts')})+", re.MULTILINE)
_SETTINGS: Final[Mapping[str, Any]] = {
    "project": "Joinery",
    "html_title": "Joinery docs",
    "root_doc": "index",
    "extensions": ["myst_parser", "sphinx_design", "sphinx_copybutton"],
    "myst_enable_extensions": ["colon_fence"],
    "myst_heading_anchors": 4,
    "suppress_warnings": ["myst.xref_missing", "myst.header", "misc.highlighting_failure"],
    "html_theme": "furo",
    "html_static_path": [
        str(Path(__file__).parent / "theme"),
        *(str(ROOT / "entrypoints/console/static" / name) for name in ("mark.svg", "vendor/inter.woff2")),
    ],
    "templates_path": [str(Path(__file__).parent / "sidebar")],
    "html_favicon": str(ROOT / "entrypoints/console/static/mark.svg"),
    "html_sidebars": {
        "**": [
            "sidebar/header.html",
            "sidebar/search.html",
            "sidebar/scroll-start.html",
            "sidebar/navigation.html",
            "sidebar/scroll-end.html",
        ]
    },
    "html_css_files": ["joinery.css"],
    "html_js_files": ["joinery.js"],
    "html_link_suffix": "",
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    "html_use_index": False,
    "html_show_copyright": False,
    "html_theme_options": {
        "footer_icons": [],
        # the colours of entrypoints/console/static/console.css
        "light_css_variables": {
            "font-stack": "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
            "color-brand-primary": "#8a4b16",
            "color-brand-content": "#8a4b16",
            "color-brand-visited": "#8a4b16",
            "color-foreground-primary": "#211f1c",
            "color-foreground-secondary": "#615c54",
            "color-background-secondary": "#f7f6f3",
            "color-background-border": "#e3dfd7",
        },
        "dark_css_variables": {
            "color-brand-primary": "#e8b27f",
            "color-brand-content": "#e8b27f",
            "color-brand-visited": "#e8b27f",
            "color-foreground-primary": "#eeebe5",
            "color-foreground-secondary": "#aaa398",
            "color-background-primary": "#1c1b18",
            "color-background-secondary": "#151412",
            "color-background-border": "#34312c",
        },
    },
}


def build_pages() -> dict[str, str]:
    """Return the Markdown of every page, by the page's path below /docs/."""
    contents = tomllib.loads(files("entrypoints.site").joinpath("contents.toml").read_text("utf-8"))
    groups = [group for group in contents["group"] if "pages" in group]
    names = {f"docs/{page}.md": join(group["under"], page) for group in groups for page in group["pages"]}
    decisions = sorted(path.stem for path in (ROOT / "docs" / "decisions").glob("*.md"))
    names |= {f"docs/decisions/{name}.md": f"inside/decisions/{name}" for name in decisions}
    names |= {"CHANGELOG.md": "changelog", "docs/decisions": "inside/decisions"}
    pages_by_name = {name: _read_page(file, name, names) for file, name in names.items() if (ROOT / file).is_file()}
    for page, words in contents["also"].items():  # search terms that are not displayed
        pages_by_name[names[f"docs/{page}.md"]] += f"\n<div hidden>{words}</div>\n"
    return pages_by_name | dict(_generate_pages(contents, decisions))


def _read_page(file: str, page_path: str, page_by_file: Mapping[str, str]) -> str:
    """Read a Markdown file and adapt it to the site.

    Links to files become links to pages of the site; the text of a link to any other file remains without a link.
    Adjacent code samples in several languages become tabs.

    Args:
        file: The path of the file in the repository.
        page_path: The path of the page below /docs/.
        page_by_file: The paths of all pages, by file.
    """

    def resolve_link(link: re.Match[str]) -> str:
        path, mark, anchor = link[2].partition("#")
        if re.match(r"[a-z]+:", link[2]) or not path:
            return link[0]
        target_page = page_by_file.get(normpath(join(dirname(file), path)))
        return (
            link[1]
            if target_page is None
            else f"[{link[1]}]({relpath(target_page, dirname(page_path) or '.')}.md{mark}{anchor})"
        )

    def to_tabs(found: re.Match[str]) -> str:
        items = "".join(
            f":::{{tab-item}} {_TABS[sample[1]]}\n:sync: {_TABS[sample[1]]}\n\n{sample[0]}:::\n"
            for sample in _SAMPLE.finditer(found[0])
        )
        return f"::::{{tab-set}}\n:sync-group: language\n\n{items}::::\n"

    text = re.sub(r"^<!--.*?-->\n", "", (ROOT / file).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", resolve_link, text)
    return _ADJACENT_SAMPLES.sub(to_tabs, text)


def _generate_pages(contents: Mapping[str, Any], decisions: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the path and Markdown of each page that is rendered from a template.

    Args:
        contents: The decoded contents.toml.
        decisions: The names of the architecture decision records.
    """
    environment = Environment(
        loader=PackageLoader("entrypoints.site"),
        autoescape=select_autoescape(default_for_string=False, default=False),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    table = OperationTable(AREAS)
    environment.filters |= {
        "inline": render_inline,
        "pretty": format_json,
        "words": describe_rate_class,
        "type": describe_type,
        "note": render_description,
    }
    environment.globals |= {
        "areas": table.areas,
        "answering": {code: [row for row in table if code in list_error_codes(row)] for code in CODES},
        "base_url": BASE_URL,
        "codes": CODES,
        "codes_of": list_error_codes,
        "curl": format_curl,
        "decisions": decisions,
        "example_of": build_response_example,
        "field_codes": FIELD_CODES,
        "fields": _render_spaced_fields,
        "header_names": list_header_names,
        "headers": REQUEST_HEADERS,
        "in_clients": format_client_examples,
        "listed": contents,
        "parameters_of": list_query_parameters,
        "problem": lambda name: build_problem_example(name, DOCS_URL)["value"],
        "texts": tomllib.loads(files("entrypoints.site").joinpath("event_texts.toml").read_text("utf-8")),
        "types": TYPES,
        "who": CALLER_DESCRIPTIONS,
        "with_sample": TYPES_WITH_SAMPLE,
    }

    def render(template: str, **values: Any) -> str:
        return environment.get_template(template).render(values)

    for page in ("index", "reference", "events", "errors", "inside/decisions"):
        yield page, render(f"{page.rpartition('/')[2]}.md.jinja")
    for area in table.areas:
        yield f"reference/{area.name}", render("area.md.jinja", area=area)
    for name in TYPES:
        yield (
            f"events/{name}",
            render(
                "event.md.jinja", name=name, schema=EVENT_SCHEMAS.get(name), sample=create_event_sample(name, table)
            ),
        )
    for code in CODES.values():
        yield f"errors/{code.name}", render("error.md.jinja", code=code)


_ACCESSIBLE_ELEMENTS = {
    'role="heading"': 'role="heading" aria-level="2"',
    '<aside class="sidebar-drawer"': '<aside aria-label="Pages" class="sidebar-drawer"',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results"></div>': '<h1>Search</h1>\n<div id="search-results"></div>',
}
"""Elements of Sphinx and Furo that fail accessibility rules, with their replacements."""


def _render_spaced_fields(*arguments: Any, **options: Any) -> str:
    """Render fields like `render_fields`, with spaces that separate the words of elements in the search index."""
    # The search index removes tags, and would otherwise join the words around them.
    return re.sub(r"<(?=li|ul|details|br)", " <", render_fields(*arguments, **options))


def build_site(target: Path) -> None:
    """Build the site, and replace the folder `target` by it. Raises SystemExit if Sphinx reports an error."""
    with TemporaryDirectory() as folder:
        source, pages_by_name, doctrees = (Path(folder, name) for name in ("source", "html", "doctrees"))
        for name, text in build_pages().items():
            path = source / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        application = Sphinx(
            source, None, pages_by_name, doctrees, "html", dict(_SETTINGS), status=None, warningiserror=True
        )
        application.build()
        if application.statuscode:
            raise SystemExit("The documentation has errors. See the warnings of Sphinx above.")
        for unused in ("objects.inv", ".buildinfo"):
            (pages_by_name / unused).unlink()
        rmtree(pages_by_name / "_sources")
        allowed: dict[str, set[str]] = {"script": set(), "style": set()}
        for path in pages_by_name.rglob("*.html"):
            text = re.sub(r' style="[^"]*"', "", path.read_text("utf-8"))  # the policy does not allow inline styles
            for former, accessible in _ACCESSIBLE_ELEMENTS.items():
                text = text.replace(former, accessible)
            path.write_text(text, "utf-8")
            for kind, found in allowed.items():
                found |= {build_hash_source(inner) for inner in re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)}
        policy = json.dumps({kind: sorted(found) for kind, found in allowed.items()})
        (pages_by_name / POLICY_FILE).write_text(policy, "utf-8")
        rmtree(target, ignore_errors=True)
        move(pages_by_name, target)


if __name__ == "__main__":
    build_site(Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT_FOLDER)
