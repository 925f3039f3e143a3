"""Texts that the demo prints: progress and results of runs, and example requests."""

from collections import Counter
from collections.abc import Mapping
from string import Template
from typing import Any

_WIDTH = 24
APPROVAL_REASON = "The operator of the demo invited the owner."
SIGNER = ("Frida Lindgren", "Managing director")
"""Name and title of the person who accepts the data agreement."""
AGREEMENT_TITLE = "Data agreement of the demo"
AGREEMENT_TEXT = """\
# Data agreement of the demo

The vendor permits this service to show the products of its published catalogue to other organisations. The vendor decides which
products are listed, and which organisations read stock and cost.

The vendor can hide a product or withdraw the catalogue at any time. This text is an example without legal effect.
"""


def count_processed(stats: Mapping[str, int], item_kind: str) -> int:
    """Return how many items a run has created or changed. The number of products includes unchanged products.

    Args:
        stats: The statistics of the run.
        item_kind: `products`, `variants` or `offers`.
    """
    count = stats.get(f"{item_kind}_created", 0) + stats.get(f"{item_kind}_changed", 0)
    return count + stats.get("unchanged", 0) if item_kind == "products" else count


def format_progress(name: str, run: Mapping[str, Any]) -> str:
    """Describe a run's progress in one line."""
    stats = run.get("stats", {})
    stage = run.get("stage", "")
    status = run.get("status", "")
    state = f"{status}: {run['waiting']['detail']}" if run.get("waiting") else stage if status == "running" else status
    return (
        f"  {name:<{_WIDTH}} {state:<10} {stats.get('rows', 0):>6,} rows  "
        f"{count_processed(stats, 'products'):>5,} products  {stats.get('problems', 0):>4,} problems"
    )


def format_publication_progress(name: str, run: Mapping[str, Any]) -> str:
    """Describe the progress of a publication run in one line."""
    progress = run["progress"]
    return f"  {name:<{_WIDTH}} {run['status']:<10} {progress['done']:>6,} of {progress['total']:,} products published"


def format_publication(vendor: str, retailer: str, catalogue: Mapping[str, Any]) -> str:
    """Describe in one line what the vendor has published.

    Args:
        vendor: The name of the vendor.
        retailer: The name of the organisation that reads the catalogue.
        catalogue: The vendor's catalogue.
    """
    if not catalogue["published"]:
        return f"{vendor}, a vendor, has not published its catalogue."
    return (
        f"{vendor}, a vendor, has published {catalogue['listed']:,} products. {retailer} reads them with their stock, "
        "and follows the catalogue, so that products that both have are merged."
    )


def format_summary(name: str, run: Mapping[str, Any]) -> list[str]:
    """Describe a run's result: counts and kinds of problems, or the error."""
    if run.get("status") != "succeeded":
        error = run.get("error", {})
        return [f"  {name:<{_WIDTH}} {run.get('status')}: {error.get('message', 'no reason is available')}"]
    stats = run["stats"]
    if stats.get("unchanged_feed"):
        return [f"  {name:<{_WIDTH}} unchanged since the last run"]
    words = ("products", "variants", "offers")
    counts = [f"{number:,} {word}" for word in words if (number := count_processed(stats, word))]
    if run.get("stream") == "stock":
        counts = [f"stock of {count_processed(stats, 'offers'):,} offers"]
    lines = [f"  {name:<{_WIDTH}} {', '.join(counts) or 'nothing new'} from {stats.get('rows', 0):,} rows"]
    kinds = Counter(problem["problem"].replace("_", " ") for problem in run.get("problems", ()))
    if kinds:
        counted = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        lines.append(f"  {'':<{_WIDTH}} {stats.get('problems', 0):,} problems: {counted}")
    return lines


def format_example_requests(
    base_url: str, secret: str, product_id: str | None, run_id: str, catalogue_id: str
) -> list[str]:
    """Return the lines of seven example requests (curl), each with its title.

    Args:
        base_url: The URL of the service.
        secret: The API key.
        product_id: The ID of a product to show, or None.
        run_id: The ID of a run to show.
        catalogue_id: The ID of the vendor's catalogue.
    """
    signed = f'-H "Authorization: Bearer {secret}"'
    path_by_title = {
        "Panel beds in stock": "/v1/products?q=panel+bed&availability=in_stock&limit=3",
        "One product with all its variants and offers": f"/v1/products/{product_id}"
        if product_id
        else "/v1/products?limit=1",
        "Offers in stock": "/v1/offers?availability=in_stock&limit=5",
        "A run with its problems": f"/v1/runs/{run_id}",
        "Merged products of both vendors": "/v1/merges?kind=product&limit=3",
        "Matches that wait for your decision": "/v1/match-pairs?status=open&limit=3",
        "Products that a vendor has published": f"/v1/products?catalogue={catalogue_id}&limit=3",
    }
    return [
        line
        for title, path in path_by_title.items()
        for line in (f"# {title}", f'curl -sS {signed} "{base_url}{path}"')
    ]


class _Snippet(Template):
    """Template with placeholders `@name`, because the shell uses the dollar sign."""

    delimiter = "@"


_OWN_FEED_COMMANDS = _Snippet(
    r"""
API=@base_url KEY=@secret FILE=my-feed.csv
[ -f "$FILE" ] || printf 'SKU,Name,Width (in),Depth (in),Height (in),Price,Qty\nOAK-1,Oak stool,14,14,18 1/2,79.00,12\n' > "$FILE"
post() { curl -sS -X POST -H "Authorization: Bearer $KEY" -H "Idempotency-Key: own-$(date +%s)-$$-$1" -H "Content-Type: application/json" -d "$2" "$API$1"; }
SOURCE=$(post /v1/sources '{"name":"My own feed","kind":"file","config":{"currency":"usd"}}' | grep -o 'src_[0-9A-Za-z]*' | head -1)
UPLOAD=$(post "/v1/sources/$SOURCE/uploads" '{"filename":"'"$(basename "$FILE")"'","content_type":"text/csv","bytes":'$(($(wc -c < "$FILE")))'}')
curl -sS -T "$FILE" -H "Content-Type: text/csv" "$(printf %s "$UPLOAD" | sed 's/.*"url":"\([^"]*\)".*/\1/')"
RUN=$(post "/v1/uploads/$(printf %s "$UPLOAD" | grep -o 'upl_[0-9A-Za-z]*' | head -1)/complete" '{}' | grep -o 'run_[0-9A-Za-z]*' | head -1)
while curl -sS -H "Authorization: Bearer $KEY" "$API/v1/runs/$RUN" | grep -Eq '"status": ?"(queued|running|waiting)"'; do sleep 1; done
curl -sS -H "Authorization: Bearer $KEY" "$API/v1/products?source=$SOURCE"
"""
)


def format_own_feed_commands(base_url: str, secret: str) -> list[str]:
    """Return shell commands that import the user's price list my-feed.csv through a file source and an upload.

    If my-feed.csv does not exist, the commands create an example with one row.
    """
    return _OWN_FEED_COMMANDS.substitute(base_url=base_url, secret=secret).strip().splitlines()
