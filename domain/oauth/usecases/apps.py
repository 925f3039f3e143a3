"""The apps that an organisation makes: owners and admins keep them, and each secret is shown once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from domain.access.model import SCOPES, Principal
from domain.access.usecases import secret_with
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, FieldError, InvalidRequest, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.resource import existing
from domain.oauth import redirects
from domain.oauth.model import APP, GRANT, MOST_APPS, SECRET_PREFIX, App, AppKind, Origin
from domain.oauth.ports import AppStore, TokenDigest
from domain.orgs.model import MANAGERS
from domain.orgs.usecases.service import confirm_role
from ports.unit_of_work import Tx

LONGEST_NAME = 100
_MANAGERS_ONLY = "Only an owner or admin who is signed in to the console may manage OAuth apps."


@dataclass(frozen=True, slots=True)
class NewApp:
    """What a new app shall be. `redirect_uris` are none for a machine app, else 1 to 20; `scopes` what it may ask for at most."""

    name: str
    kind: AppKind
    redirect_uris: tuple[str, ...] = ()
    scopes: frozenset[str] = SCOPES
    home: str | None = None


@dataclass(frozen=True, slots=True)
class AppChange:
    """What shall be otherwise; None leaves it. The kind never changes."""

    name: str | None = None
    redirect_uris: tuple[str, ...] | None = None
    scopes: frozenset[str] | None = None


class AppService:
    """Apps of the transaction's organisation, for owners and admins who are signed in as a person.

    `digest` hashes secrets. Everything that changes something raises PermissionDenied for others, and is audited.
    """

    def __init__(self, digest: TokenDigest) -> None:
        self._digest = digest

    async def list_apps(self, tx: Tx) -> Sequence[App]:
        """Every app of the organisation, the oldest first."""
        return await tx[AppStore].all()

    async def get_app(self, tx: Tx, id: str) -> App:
        """One of them. Raises NotFound."""
        return existing(await tx[AppStore].get(id))

    async def create_app(self, tx: Tx, caller: Principal, wanted: NewApp) -> tuple[App, str | None]:
        """Make an app; answers it and its secret, None for a public one.

        Raises InvalidRequest with the fields that are wrong, Conflict beyond 100 apps.
        """
        await _manages(tx, caller)
        name = _judged(wanted.name, wanted.kind, wanted.redirect_uris, wanted.scopes)
        if len(await tx[AppStore].all()) >= MOST_APPS:
            raise Conflict(f"An organisation has at most {MOST_APPS} apps; delete one first.")
        id, secret = new_id("app"), secret_with(SECRET_PREFIX) if wanted.kind.confidential else None
        app = App(
            id=id,
            client_id=id,
            kind=wanted.kind,
            origin=Origin.ORGANISATION,
            name=name,
            redirect_uris=wanted.redirect_uris,
            scopes=wanted.scopes,
            created_at=tx.now,
            updated_at=tx.now,
            org=tx.tenant.org,
            made_by=caller.user,
            digest=self._digest(secret) if secret else None,
            last4=secret[-4:] if secret else None,
            home=wanted.home,
        )
        await tx[AppStore].add(app)
        await tx[AuditLog].add(APP.created(app))
        return app, secret

    async def change_app(self, tx: Tx, caller: Principal, id: str, change: AppChange) -> App:
        """Change name, redirect URIs or scopes. Scopes taken away are gone from what is signed in when that is refreshed.

        Raises NotFound, InvalidRequest.
        """
        await _manages(tx, caller)
        before = existing(await tx[AppStore].get(id))
        uris = before.redirect_uris if change.redirect_uris is None else change.redirect_uris
        scopes = before.scopes if change.scopes is None else change.scopes
        name = _judged(change.name if change.name is not None else before.name, before.kind, uris, scopes)
        after = replace(before, name=name, redirect_uris=uris, scopes=scopes, updated_at=tx.now)
        return await self._saved(tx, before, after)

    async def rotate_secret(self, tx: Tx, caller: Principal, id: str) -> tuple[App, str]:
        """Create a new secret, returned once; the previous one becomes invalid. Raises NotFound, Conflict for a public app."""
        await _manages(tx, caller)
        before = existing(await tx[AppStore].get(id))
        if not before.kind.confidential:
            raise Conflict("This app is a public one: it has no secret.")
        secret = secret_with(SECRET_PREFIX)
        after = replace(before, digest=self._digest(secret), last4=secret[-4:], updated_at=tx.now)
        return await self._saved(tx, before, after), secret

    async def delete_app(self, tx: Tx, caller: Principal, id: str) -> None:
        """Take an app away, and what the organisation's people granted to it: its tokens prove nothing from then on. Raises NotFound."""
        await _manages(tx, caller)
        app = existing(await tx[AppStore].get(id))
        for grant in [one for one in await tx[AppStore].grants() if one.app == id]:
            after = replace(grant, revoked_at=tx.now, updated_at=tx.now)
            await tx[AppStore].put_grant(after)
            await tx[AuditLog].add(GRANT.updated(grant, after))
        await tx[AppStore].remove(id)
        await tx[AuditLog].add(APP.deleted(app))

    @staticmethod
    async def _saved(tx: Tx, before: App, after: App) -> App:
        change: Change = APP.updated(before, after)
        if before != replace(after, updated_at=before.updated_at):
            await tx[AppStore].save(after)
            await tx[AuditLog].add(change)
        return after


async def _manages(tx: Tx, caller: Principal) -> None:
    if not caller.session or caller.role not in MANAGERS:
        raise PermissionDenied(_MANAGERS_ONLY)
    await confirm_role(tx, MANAGERS, _MANAGERS_ONLY)


def _judged(name: str, kind: AppKind, uris: tuple[str, ...], scopes: frozenset[str]) -> str:
    """Validate the app's fields, and return the name in normal form. Raises InvalidRequest."""
    kept = " ".join(name.split())
    faults: list[FieldError] = []
    if not kept or len(kept) > LONGEST_NAME or not kept.isprintable():
        faults.append(FieldError("name", "invalid_value", f"A name has 1 to {LONGEST_NAME} characters."))
    if unknown := scopes - SCOPES:
        faults.append(FieldError("scopes", "invalid_value", f"There are no scopes {', '.join(sorted(unknown))}."))
    if not scopes:
        faults.append(FieldError("scopes", "too_few", "Name at least one scope."))
    faults += _judged_uris(kind, uris)
    if faults:
        raise InvalidRequest(faults[0].detail, fields=tuple(faults))
    return kept


def _judged_uris(kind: AppKind, uris: tuple[str, ...]) -> list[FieldError]:
    if kind is AppKind.MACHINE:
        told = "A machine app has no redirect URIs."
        return [FieldError("redirect_uris", "too_many", told)] if uris else []
    if not 1 <= len(uris) <= redirects.MOST:
        return [FieldError("redirect_uris", "too_few", f"Name 1 to {redirects.MOST} redirect URIs.")]
    told_of = ((place, redirects.refused(uri, kind)) for place, uri in enumerate(uris))
    return [FieldError(f"redirect_uris.{place}", "invalid_value", why) for place, why in told_of if why]
