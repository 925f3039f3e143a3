"""The shell lines by which anyone hands in a price list: a file source, an upload announced, put and completed, its run."""

from string import Template
from typing import Final


class _Snippet(Template):
    """Placeholders are written `@name`: the shell has the dollar sign."""

    delimiter = "@"


_LINES: Final = _Snippet(
    r"""
API=@base_url KEY=@secret FILE=my-feed.csv
[ -f "$FILE" ] || printf 'SKU,Name,Width (in),Depth (in),Height (in),Price,Qty\nOAK-1,Oak stool,14,14,18 1/2,79.00,12\n' > "$FILE"
post() { curl -sS -X POST -H "Authorization: Bearer $KEY" -H "Idempotency-Key: own-$(date +%s)-$$-$1" -H "Content-Type: application/json" -d "$2" "$API$1"; }
SOURCE=$(post /v1/sources '{"name":"My own feed","kind":"file","config":{"currency":"usd"}}' | grep -o 'src_[0-9A-Za-z]*' | head -1)
UPLOAD=$(post "/v1/sources/$SOURCE/uploads" '{"filename":"'"$(basename "$FILE")"'","content_type":"text/csv","bytes":'$(($(wc -c < "$FILE")))'}')
curl -sS -T "$FILE" -H "Content-Type: text/csv" "$(printf %s "$UPLOAD" | sed 's/.*"url":"\([^"]*\)".*/\1/')"
post "/v1/uploads/$(printf %s "$UPLOAD" | grep -o 'upl_[0-9A-Za-z]*' | head -1)/complete" '{}'; sleep 3
curl -sS -H "Authorization: Bearer $KEY" "$API/v1/products?source=$SOURCE"
"""
)


def own_feed(base_url: str, secret: str) -> list[str]:
    """The lines, to be pasted as they are. Without a file of that name they make an example of one row."""
    return _LINES.substitute(base_url=base_url, secret=secret).strip().splitlines()
