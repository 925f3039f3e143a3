"""The look of the documentation pages: one stylesheet and one script, both inline, so that nothing is fetched."""

from base64 import b64encode
from hashlib import sha256
from typing import Final

STYLE: Final = """
:root{--ink:#1d2433;--soft:#5b6478;--line:#e3e6ee;--paper:#fff;--tint:#f6f7fb;--accent:#7a4b1e;--get:#1f7a4d;
--post:#2557c7;--patch:#9a5b00;--put:#9a5b00;--delete:#b3261e;--code:#f3f1ec}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaf1;--soft:#a3abc0;--line:#2c3346;--paper:#141824;--tint:#1b2030;
--accent:#e0a974;--get:#5fce98;--post:#8db2ff;--patch:#f0b45a;--put:#f0b45a;--delete:#ff8a80;--code:#1f2536}}
*{box-sizing:border-box}html{scroll-behavior:smooth;scroll-padding-top:1rem}
body{margin:0;font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:var(--ink);background:var(--paper)}
a{color:var(--accent)}a:focus-visible,button:focus-visible,summary:focus-visible{outline:3px solid var(--accent);
outline-offset:2px}
.skip{position:absolute;left:-99em}.skip:focus{left:1rem;top:1rem;background:var(--paper);padding:.5rem}
.page{display:grid;grid-template-columns:17rem minmax(0,1fr);max-width:86rem;margin:auto}
nav{position:sticky;top:0;align-self:start;height:100vh;overflow:auto;padding:1.5rem 1rem;border-right:1px solid var(--line);
font-size:.88rem}
nav h2{font-size:.75rem;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);margin:1.2rem 0 .3rem}
nav ul{list-style:none;margin:0;padding:0}nav a{display:block;padding:.12rem 0;text-decoration:none;color:inherit}
nav a:hover{color:var(--accent)}nav .brand{font-weight:700;font-size:1.15rem}
main{padding:2rem clamp(1rem,4vw,3.5rem);min-width:0}
h1{font-size:2rem;line-height:1.2;margin:.2rem 0 1rem}h2{margin:3rem 0 .5rem;font-size:1.45rem}
h3{margin:0;font-size:1.15rem}h4{margin:1.2rem 0 .4rem;font-size:.8rem;text-transform:uppercase;letter-spacing:.05em;
color:var(--soft)}
article{border-top:1px solid var(--line);padding:2rem 0}
.route{font:600 .92rem ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.method{display:inline-block;min-width:3.6em;font-weight:700}.GET{color:var(--get)}.POST{color:var(--post)}
.PATCH{color:var(--patch)}.PUT{color:var(--put)}.DELETE{color:var(--delete)}
.tags{display:flex;flex-wrap:wrap;gap:.4rem;margin:.6rem 0}.tags span{background:var(--tint);border:1px solid var(--line);
border-radius:1rem;padding:.05rem .7rem;font-size:.8rem}
code{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--code);padding:.08em .3em;border-radius:4px}
pre{background:var(--code);padding:1rem;border-radius:8px;overflow:auto;font-size:.84rem;line-height:1.5;margin:.3rem 0}
pre code{background:none;padding:0;font-size:1em}
.copy{position:relative}.copy button{position:absolute;top:.5rem;right:.5rem;font:inherit;font-size:.75rem;cursor:pointer;
border:1px solid var(--line);background:var(--paper);color:inherit;border-radius:6px;padding:.15rem .6rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;vertical-align:top;padding:.4rem .6rem .4rem 0;
border-bottom:1px solid var(--line)}th{font-size:.78rem;color:var(--soft)}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--accent)}.soft{color:var(--soft)}
.fields{list-style:none;padding-left:0;margin:.2rem 0}.fields .fields{padding-left:1rem;border-left:2px solid var(--line)}
.fields li{padding:.25rem 0}
@media(max-width:56rem){.page{display:block}nav{position:static;height:auto;border-right:0;border-bottom:1px solid var(--line)}}
""".strip()

SCRIPT: Final = """
document.addEventListener("click",async function(event){var button=event.target.closest(".copy button");if(!button)return;
await navigator.clipboard.writeText(button.parentNode.querySelector("code").textContent);
button.textContent="Copied";setTimeout(function(){button.textContent="Copy"},1500)});
""".strip()


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
