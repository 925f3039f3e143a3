"""Apps of an organisation, managed by owners and admins; each secret is shown once."""

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
    """Properties of a new app.

    A machine app has no `redirect_uris`, others 1 to 20; `scopes` are the most it may request.
    """

    name: str
    kind: AppKind
    redirect_uris: tuple[str, ...] = ()
    scopes: frozenset[str] = SCOPES
    home: str | None = None


@dataclass(frozen=True, slots=True)
class AppChange:
    """Changes of an app; None leaves a property. The kind never changes."""

    name: str | None = None
    redirect_uris: tuple[str, ...] | None = None
    scopes: frozenset[str] | None = None


class AppService:
    """The organisation's apps, for signed-in owners and admins.

    `digest` hashes secrets. Changes are audited, and raise PermissionDenied for others.
    """

    def __init__(self, digest: TokenDigest) -> None:
        self._digest = digest

    async def list_apps(self, tx: Tx) -> Sequence[App]:
        """Return the organisation's apps, oldest first."""
        return await tx[AppStore].all()

    async def get_app(self, tx: Tx, id: str) -> App:
        """Return an app. Raises NotFound."""
        return existing(await tx[AppStore].get(id))

    async def create_app(self, tx: Tx, caller: Principal, wanted: NewApp) -> tuple[App, str | None]:
        """Create an app; return it and its secret, None for a public app.

        Raises InvalidRequest with field errors, Conflict beyond MOST_APPS.
        """
        await _require_manager(tx, caller)
        name = _validate(wanted.name, wanted.kind, wanted.redirect_uris, wanted.scopes)
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
        """Change name, redirect URIs or scopes.

        Removed scopes are lost when existing sign-ins are refreshed. Raises NotFound, InvalidRequest.
        """
        await _require_manager(tx, caller)
        before = existing(await tx[AppStore].get(id))
        uris = before.redirect_uris if change.redirect_uris is None else change.redirect_uris
        scopes = before.scopes if change.scopes is None else change.scopes
        name = _validate(change.name if change.name is not None else before.name, before.kind, uris, scopes)
        after = replace(before, name=name, redirect_uris=uris, scopes=scopes, updated_at=tx.now)
        return await self._saved(tx, before, after)

    async def rotate_secret(self, tx: Tx, caller: Principal, id: str) -> tuple[App, str]:
        """Replace the secret, which is shown once; the former one ends at once.

        Raises NotFound, Conflict for a public app.
        """
        await _require_manager(tx, caller)
        before = existing(await tx[AppStore].get(id))
        if not before.kind.confidential:
            raise Conflict("This app is a public one: it has no secret.")
        secret = secret_with(SECRET_PREFIX)
        after = replace(before, digest=self._digest(secret), last4=secret[-4:], updated_at=tx.now)
        return await self._saved(tx, before, after), secret

    async def delete_app(self, tx: Tx, caller: Principal, id: str) -> None:
        """Delete an app and the organisation's grants to it, which invalidates its tokens. Raises NotFound."""
        await _require_manager(tx, caller)
        app = existing(await tx[AppStore].get(id))
        for grant in [grant for grant in await tx[AppStore].grants() if grant.app == id]:
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


async def _require_manager(tx: Tx, caller: Principal) -> None:
    if not caller.session or caller.role not in MANAGERS:
        raise PermissionDenied(_MANAGERS_ONLY)
    await confirm_role(tx, MANAGERS, _MANAGERS_ONLY)


def _validate(name: str, kind: AppKind, uris: tuple[str, ...], scopes: frozenset[str]) -> str:
    """Return the normalised name of a valid app. Raises InvalidRequest."""
    normalised = " ".join(name.split())
    errors: list[FieldError] = []
    if not normalised or len(normalised) > LONGEST_NAME or not normalised.isprintable():
        errors.append(FieldError("name", "invalid_value", f"A name has 1 to {LONGEST_NAME} characters."))
    if unknown := scopes - SCOPES:
        errors.append(FieldError("scopes", "invalid_value", f"Unknown scopes: {', '.join(sorted(unknown))}."))
    if not scopes:
        errors.append(FieldError("scopes", "too_few", "Name at least one scope."))
    errors += _validate_uris(kind, uris)
    if errors:
        raise InvalidRequest(errors[0].detail, fields=tuple(errors))
    return normalised


def _validate_uris(kind: AppKind, uris: tuple[str, ...]) -> list[FieldError]:
    if kind is AppKind.MACHINE:
        detail = "A machine app has no redirect URIs."
        return [FieldError("redirect_uris", "too_many", detail)] if uris else []
    if not 1 <= len(uris) <= redirects.MOST:
        return [FieldError("redirect_uris", "too_few", f"Name 1 to {redirects.MOST} redirect URIs.")]
    reasons = ((place, redirects.refused(uri, kind)) for place, uri in enumerate(uris))
    return [FieldError(f"redirect_uris.{place}", "invalid_value", why) for place, why in reasons if why]
