"""The look of the documentation pages: one stylesheet and one script, both inline, so that nothing is fetched."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Final


def text(name: str) -> str:
    """A file that is shipped beside this one."""
    return files(__package__).joinpath(name).read_text("utf-8").strip()


STYLE: Final = text("docs_style.css")
SCRIPT: Final = text("docs_script.js")


def _allowed(text: str) -> str:
    return "'sha256-" + b64encode(sha256(text.encode()).digest()).decode() + "'"


POLICY: Final = (
    f"default-src 'none'; style-src {_allowed(STYLE)}; script-src {_allowed(SCRIPT)}; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the pages."""


def page(title: str, nav: str, main: str) -> str:
    """A whole page around its navigation and contents."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<style>{STYLE}</style></head><body><a class="skip" href="#main">Skip to contents</a>'
        f'<div class="page"><nav aria-label="Contents">{nav}</nav><main id="main">{main}</main></div>'
        f"<script>{SCRIPT}</script></body></html>"
    )
