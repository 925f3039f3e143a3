"""Paths of all console pages, with the IDs of a large organisation."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from entrypoints.areas.registry import AREAS
from entrypoints.console.pages import PAGES
from entrypoints.console.product_query import COLUMNS
from tests.support.console_large import LargeOrganisation

_NOT_PAGES = ("/stream/", "/progress", "/vendor-file")
_UNKNOWN_IDS = {"secret": "none", "org": "org_0000000000000000000000"}
"""Secrets in rules, which only recipients of a link know."""
_FURTHER: Final[Mapping[str, Sequence[str]]] = {
    "/console/vendors": ("?q=oak&verified=false",),
    "/console/catalogue": (
        "?q=oak",
        "?status=active",
        "?layout=grid",
        "?sort=price_low&columns=" + ",".join(column.name for column in COLUMNS),
    ),
    "/console/catalogue/corrections": ("?state=changed", "?field=price"),
    "/console/catalogue/correct": ("?q=oak",),
    "/console/developers/events": ("?types=offer.changed",),
    "/console/developers/reference": ("?q=list",),
    "/console/organisation/audit": ("?object=source",),
    "/console/organisation/notifications/<rule>": ("?preview=true",),
}
"""Queries of further views of a page, by its rule."""


def build_paths(made: LargeOrganisation) -> Iterator[str]:
    """Return the path of each page, with variants of pages that have several views. Raises LookupError for a rule with unknown IDs."""
    known, further = _ids(made), _further(made)
    for page in PAGES:
        if "GET" not in page.methods or any(part in page.path_pattern for part in _NOT_PAGES):
            continue
        rule = re.sub(r"<any\((\w+)[^>]*>", r"\1", page.path_pattern)
        for value in known[_stem(rule)] if "<" in rule else ("",):
            named = re.search(r"<(\w+)>", rule)
            place = rule if named is None else rule.replace(named[0], _UNKNOWN_IDS.get(named[1], value), 1)
            place = place.replace("<delivery>", made.deliveries[0]).replace("/<event>", "")
            place = place.replace("<notification>", made.notification.id)
            yield place
            yield from (place + query for query in further.get(rule, ()))


def _stem(rule: str) -> str:
    """Return the rule up to its first ID."""
    return rule.partition("<")[0]


def _ids(made: LargeOrganisation) -> dict[str, Sequence[str]]:
    return {
        "/console/catalogue/": [made.product.id],
        "/console/catalogue/actions/": ["blk_0000000000000000000000"],
        "/console/catalogue/corrections/": made.batches[:1],
        "/console/pictures/": ["img_0000000000000000000000"],
        "/console/sources/": made.sources[:1],
        "/console/runs/": [run.id for run in made.runs[:3]],
        "/console/probes/": [made.probe.id],
        "/console/mappings/": [mapping.id for mapping in made.mappings],
        "/console/matching/pairs/": [made.pairs[0].id],
        "/console/merges/": [made.merges[0].id],
        "/console/developers/keys/": made.keys[:1],
        "/console/developers/apps/": made.apps[:1],
        "/console/developers/webhooks/": [made.endpoints[0].id],
        "/console/developers/requests/": made.requests[:1],
        "/console/developers/events/": [f"{made.event.subject}/{made.event.id}"],
        "/console/developers/reference/": [row.id for area in AREAS for row in area.operations],
        "/console/organisation/members/": made.members[1:2],
        "/console/organisation/agreement/versions/": ["1"],
        "/console/billing/plans/": ["standard"],
        "/console/billing/credit/purchases/": made.purchases[:1],
        "/console/organisation/audit/": made.audited[:1],
        "/console/organisation/notifications/": [made.notification.rule],
        "/console/unsubscribe/": ["none"],
        "/console/assistant/conversations/": ["none"],
        "/console/invitations/": ["none"],
        "/console/shared/": ["none"],
        "/console/brand/claims/": ["vcl_0000000000000000000000"],
        "/console/link/": ["none"],
        "/console/set-password/": ["none"],
        "/console/sso/callback/": ["none"],
    }


def _further(made: LargeOrganisation) -> dict[str, Sequence[str]]:
    variant, [problem, *_] = made.product.variants[0], made.runs[0].problems
    return {
        **_FURTHER,
        "/console/catalogue/<id>": (
            f"?variant={made.product.variants[-1].id}",
            f"?variant={variant.id}&part=history",
            f"?variant={variant.id}&part=origin&source={made.sources[0]}",
            "?part=fields",
            "?part=pictures",
            f"?edit={made.product.id}:description",
            f"?edit={made.product.id}:category",
        ),
        "/console/catalogue/compare": (
            f"?products={','.join(f'{made.product.id}:{variant.id}' for variant in made.product.variants[-8:])}&q=oak",
            f"?products={made.product.id}&by=source",
        ),
        "/console/catalogue/compare/vendors": (f"?first={made.sources[0]}&second={made.sources[1]}",),
        "/console/runs/<id>/sheet": (f"?kind={problem.problem}&field={problem.field}",),
    }
