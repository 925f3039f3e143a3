"""API keys: listed with their policy and last use, made with the secret shown once, revoked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from domain.access.model import KEY_PREFIXES, ROLES, ApiKey
from domain.access.ports import KeyStore
from domain.kernel.paging import Page as Listed
from domain.kernel.paging import PageRequest
from domain.people.usecases.keys import KEY_MAKERS, KeyService, NewKey
from entrypoints.console.acting import acting
from entrypoints.console.asked import whole_number
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.sudo import sudo
from entrypoints.console.visit import Visit

PLACE: Final = "/console/developers/keys"
LIFE: Final = (("", "Never"), ("7", "In 7 days"), ("30", "In 30 days"), ("90", "In 90 days"), ("365", "In a year"))
_LIMIT: Final = 20
_SCOPE: Final = "webhooks:write"
"""Held by the very roles that make keys."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a key may see and change of one kind of things; None where the role may not."""

    title: str
    read: str | None
    write: str | None


def choices_of(role: str) -> Sequence[Choice]:
    """What a role can give to a key, by kind of things."""
    held = ROLES[role]
    kinds = sorted({scope.partition(":")[0] for scope in held})
    return [Choice(kind, _held(held, kind, "read"), _held(held, kind, "write")) for kind in kinds]


def _held(held: frozenset[str], kind: str, act: str) -> str | None:
    scope = f"{kind}:{act}"
    return scope if scope in held else None


def followed(page: Listed[Any]) -> Mapping[str, Any]:
    """What the macro of pages is told of a list that is no operation's."""
    return {"has_more": page.has_more, "next_cursor": page.next_key}


async def keys(visit: Visit) -> Answer:
    """Keys in force, or those that were revoked."""
    ended = visit.query["show"] == "revoked"
    request = PageRequest(limit=_LIMIT, key=visit.query.get("cursor") or None)
    async with visit.reading() as tx:
        listed = await _service(visit).list_keys(tx, request, ended=ended)
        names = await _makers(visit, listed.page.items)
    return visit.render(
        "keys/list.html",
        keys=listed.page.items,
        found=followed(listed.page),
        used=listed.used,
        makers=names,
        ended=ended,
        prefixes=KEY_PREFIXES,
        now=visit.dependencies.clock.now(),
        makes=visit.principal.role in KEY_MAKERS,
        query={"show": "revoked"} if ended else {},
    )


@sudo(f"{PLACE}/new")
async def new_key(visit: Visit) -> Answer:
    """The form, and what it makes: the secret is on that page alone."""
    if visit.asked.method != "POST":
        return _form(visit)
    form = visit.form
    livemode = form.get("mode", "live") != "test"
    try:
        asked = NewKey(
            name=form["name"],
            restricted=form["restricted"] == "true",
            scopes=frozenset(form.all("scopes")) if form["what"] == "some" else _all_of(visit, form["what"]),
            networks=tuple(line for line in form["networks"].replace(",", "\n").splitlines() if line.strip()),
            days=_days(form.get("expires")),
        )
        async with acting(visit, "keys.create", livemode=livemode) as tx:
            key, secret = await _service(visit).create(tx, asked)
    except Refused as error:
        return _form(visit, error)
    base_url = visit.dependencies.settings.base_url.rstrip("/")
    return visit.render("keys/made.html", status=201, key=key, secret=secret, base_url=base_url)


def _days(text: str) -> int | None:
    """Days until a key ends; None for no end, 0, which is refused, for what is no number."""
    return (whole_number(text) or 0) if text else None


def _all_of(visit: Visit, what: str) -> frozenset[str] | None:
    """Everything that the role may, or all that it may see."""
    if what != "read":
        return None
    return frozenset(scope for scope in ROLES[visit.principal.role] if scope.endswith(":read"))


def _form(visit: Visit, refused: Refused | None = None) -> Answer:
    return visit.render(
        "keys/new.html",
        status=200 if refused is None else refused.status,
        refused=refused,
        errors=refused.fields if refused is not None else {},
        form=visit.form,
        choices=choices_of(visit.principal.role),
        life=LIFE,
        livemode=visit.principal.tenant.livemode,
    )


async def revoke(visit: Visit) -> Answer:
    """Ask once more, then end the key."""
    if visit.asked.method != "POST":
        async with visit.reading() as tx:
            key = await tx[KeyStore].get(visit.ids["key"])
            used = await tx[KeyStore].used([visit.ids["key"]])
        if key is None or key.revoked_at is not None:
            return visit.redirect(PLACE, "There is no such key in force.", tone="info")
        return visit.render("keys/revoke.html", key=key, used=used.get(key.id), prefixes=KEY_PREFIXES)
    async with acting(visit, "keys.revoke") as tx:
        key = await _service(visit).revoke(tx, visit.ids["key"])
    return visit.redirect(PLACE, f"{key.name} is revoked. Nobody takes it any more.")


async def _makers(visit: Visit, keys: Sequence[ApiKey]) -> Mapping[str, str]:
    """What to call whoever made them."""
    ids = {key.member for key in keys if key.member is not None}
    people = await visit.dependencies.people.several(ids) if ids else {}
    return {id_: people[id_].called if id_ in people else "somebody who has left" for id_ in ids}


def _service(visit: Visit) -> KeyService:
    return KeyService(visit.dependencies.access)


PAGES: Final = (
    Page(PLACE, keys, scope=_SCOPE, menu=Entry("Developers", "API keys")),
    Page(f"{PLACE}/new", new_key, methods=("GET", "POST"), scope=_SCOPE, menu="Developers"),
    Page(f"{PLACE}/<key>/revoke", revoke, methods=("GET", "POST"), scope=_SCOPE, menu="Developers"),
)
