"""Paths of all console pages, with the IDs of a large organisation."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from entrypoints.areas.registry import AREAS
from entrypoints.console.pages import PAGES
from tests.support.console_large import LargeOrganisation

_STREAMS = ("/stream/", "/progress")
_UNKNOWN_IDS = {"secret": "none", "org": "org_0000000000000000000000"}
"""Secrets in rules, which only recipients of a link know."""
_FURTHER: Final[Mapping[str, Sequence[str]]] = {
    "/console/vendors": ("?q=oak&verified=false",),
    "/console/catalogue": ("?q=oak", "?status=active"),
    "/console/developers/events": ("?types=offer.changed",),
    "/console/developers/reference": ("?q=list",),
    "/console/organisation/audit": ("?object=source",),
}
"""Queries of further views of a page, by its rule."""


def build_paths(made: LargeOrganisation) -> Iterator[str]:
    """Return the path of each page, with variants of pages that have several views. Raises LookupError for a rule with unknown IDs."""
    known, further = _ids(made), _further(made)
    for page in PAGES:
        if "GET" not in page.methods or any(part in page.path_pattern for part in _STREAMS):
            continue
        rule = re.sub(r"<any\((\w+)[^>]*>", r"\1", page.path_pattern)
        for value in known[_stem(rule)] if "<" in rule else ("",):
            named = re.search(r"<(\w+)>", rule)
            place = rule if named is None else rule.replace(named[0], _UNKNOWN_IDS.get(named[1], value), 1)
            place = place.replace("<delivery>", made.deliveries[0]).replace("/<event>", "")
            yield place
            yield from (place + query for query in further.get(rule, ()))


def _stem(rule: str) -> str:
    """Return the rule up to its first ID."""
    return rule.partition("<")[0]


def _ids(made: LargeOrganisation) -> dict[str, Sequence[str]]:
    return {
        "/console/catalogue/": [made.product.id],
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
        "/console/invitations/": ["none"],
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
        ),
        "/console/runs/<id>/sheet": (f"?kind={problem.problem}&field={problem.field}",),
        "/console/mappings/<id>/preview": ("?position=1&field.1=title",),
    }
