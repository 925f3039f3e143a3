"""Use cases of an organisation's apps, for owners and admins. A client secret is shown once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from domain.access.model import SCOPES, Principal
from domain.access.usecases import generate_secret
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, FieldError, InvalidRequest, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.resource import require_found
from domain.oauth import redirects
from domain.oauth.model import (
    AUDITED_APP_FIELDS,
    AUDITED_CONSENT_FIELDS,
    MAX_APPS,
    SECRET_PREFIX,
    App,
    AppKind,
    AppOrigin,
)
from domain.oauth.ports import AppStore, TokenHasher
from domain.orgs.model import MANAGERS
from domain.orgs.usecases.service import require_role
from ports.unit_of_work import Tx

MAX_NAME_CHARS = 100
_MANAGERS_ONLY = "Only owners and admins who are signed in to the console can manage OAuth apps."


@dataclass(frozen=True, slots=True)
class NewApp:
    """Properties of a new app.

    A machine-to-machine app has no `redirect_uris`; other apps have 1 to 20. `scopes` are the scopes that the app may request.
    `home` is the URL of its home page.
    """

    name: str
    kind: AppKind
    redirect_uris: tuple[str, ...] = ()
    scopes: frozenset[str] = SCOPES
    home: str | None = None


@dataclass(frozen=True, slots=True)
class AppChange:
    """New values of an app's properties; None leaves a property unchanged. The kind of an app cannot be changed."""

    name: str | None = None
    redirect_uris: tuple[str, ...] | None = None
    scopes: frozenset[str] | None = None


class AppService:
    """Use cases of an organisation's apps. Changes raise PermissionDenied unless an owner or admin is signed in.

    All changes are audited.
    """

    def __init__(self, hash_token: TokenHasher) -> None:
        """Create the use cases; `hash_token` computes the keyed hash of a client secret."""
        self._hash_token = hash_token

    async def list_apps(self, tx: Tx) -> Sequence[App]:
        """Return the organisation's apps, oldest first."""
        return await tx[AppStore].list_apps()

    async def get_app(self, tx: Tx, id: str) -> App:
        """Return the organisation's app with that ID. Raises NotFound."""
        return require_found(await tx[AppStore].get(id))

    async def create_app(self, tx: Tx, caller: Principal, new_app: NewApp) -> tuple[App, str | None]:
        """Create an app; return the app and its client secret, which is None for a public app.

        Raises InvalidRequest with field errors, Conflict if there are `MAX_APPS` apps.
        """
        await _require_manager(tx, caller)
        name = _validate_app(new_app.name, new_app.kind, new_app.redirect_uris, new_app.scopes)
        if len(await tx[AppStore].list_apps()) >= MAX_APPS:
            raise Conflict(f"An organisation has at most {MAX_APPS} apps. Delete one first.")
        id, secret = new_id("app"), generate_secret(SECRET_PREFIX) if new_app.kind.is_confidential else None
        app = App(
            id=id,
            client_id=id,
            kind=new_app.kind,
            origin=AppOrigin.ORGANISATION,
            name=name,
            redirect_uris=new_app.redirect_uris,
            scopes=new_app.scopes,
            created_at=tx.now,
            updated_at=tx.now,
            org=tx.tenant.org,
            created_by=caller.user,
            digest=self._hash_token(secret) if secret else None,
            last4=secret[-4:] if secret else None,
            home=new_app.home,
        )
        await tx[AppStore].add(app)
        await tx[AuditLog].add(AUDITED_APP_FIELDS.describe_creation(app))
        return app, secret

    async def change_app(self, tx: Tx, caller: Principal, id: str, change: AppChange) -> App:
        """Change the name, redirect URIs or scopes of an app; return the changed app.

        Tokens of existing sign-ins lose removed scopes at their next refresh. Raises NotFound, InvalidRequest.
        """
        await _require_manager(tx, caller)
        before = require_found(await tx[AppStore].get(id))
        uris = before.redirect_uris if change.redirect_uris is None else change.redirect_uris
        scopes = before.scopes if change.scopes is None else change.scopes
        name = _validate_app(change.name if change.name is not None else before.name, before.kind, uris, scopes)
        after = replace(before, name=name, redirect_uris=uris, scopes=scopes, updated_at=tx.now)
        return await self._save_change(tx, before, after)

    async def rotate_secret(self, tx: Tx, caller: Principal, id: str) -> tuple[App, str]:
        """Replace the client secret; return the app and the new secret. The previous secret becomes invalid at once.

        Raises NotFound, or Conflict for a public app, which has no secret.
        """
        await _require_manager(tx, caller)
        before = require_found(await tx[AppStore].get(id))
        if not before.kind.is_confidential:
            raise Conflict("This app is public and has no secret.")
        secret = generate_secret(SECRET_PREFIX)
        after = replace(before, digest=self._hash_token(secret), last4=secret[-4:], updated_at=tx.now)
        return await self._save_change(tx, before, after), secret

    async def delete_app(self, tx: Tx, caller: Principal, id: str) -> None:
        """Delete an app and revoke the members' consents to it; all its tokens become invalid. Raises NotFound."""
        await _require_manager(tx, caller)
        app = require_found(await tx[AppStore].get(id))
        for consent in [consent for consent in await tx[AppStore].list_consents() if consent.app == id]:
            after = replace(consent, revoked_at=tx.now, updated_at=tx.now)
            await tx[AppStore].save_consent(after)
            await tx[AuditLog].add(AUDITED_CONSENT_FIELDS.describe_update(consent, after))
        await tx[AppStore].remove(id)
        await tx[AuditLog].add(AUDITED_APP_FIELDS.describe_deletion(app))

    @staticmethod
    async def _save_change(tx: Tx, before: App, after: App) -> App:
        """Store and audit the changed app, unless only `updated_at` differs; return `after`."""
        change: Change = AUDITED_APP_FIELDS.describe_update(before, after)
        if before != replace(after, updated_at=before.updated_at):
            await tx[AppStore].save(after)
            await tx[AuditLog].add(change)
        return after


async def _require_manager(tx: Tx, caller: Principal) -> None:
    if not caller.is_console_session or caller.role not in MANAGERS:
        raise PermissionDenied(_MANAGERS_ONLY)
    await require_role(tx, MANAGERS, _MANAGERS_ONLY)


def _validate_app(name: str, kind: AppKind, uris: tuple[str, ...], scopes: frozenset[str]) -> str:
    """Validate the properties of an app; return the name without superfluous spaces. Raises InvalidRequest."""
    normalised = " ".join(name.split())
    errors: list[FieldError] = []
    if not normalised or len(normalised) > MAX_NAME_CHARS or not normalised.isprintable():
        errors.append(
            FieldError("name", "invalid_value", f"A name must have 1 to {MAX_NAME_CHARS} printable characters.")
        )
    if unknown := scopes - SCOPES:
        errors.append(FieldError("scopes", "invalid_value", f"Unknown scopes: {', '.join(sorted(unknown))}."))
    if not scopes:
        errors.append(FieldError("scopes", "too_few", "Select at least one scope."))
    errors += _validate_uris(kind, uris)
    if errors:
        raise InvalidRequest(errors[0].detail, fields=tuple(errors))
    return normalised


def _validate_uris(kind: AppKind, uris: tuple[str, ...]) -> list[FieldError]:
    if kind is AppKind.MACHINE:
        detail = "A machine-to-machine app has no redirect URIs. Omit them."
        return [FieldError("redirect_uris", "too_many", detail)] if uris else []
    if not 1 <= len(uris) <= redirects.MAX_REDIRECT_URIS:
        return [FieldError("redirect_uris", "too_few", f"Enter 1 to {redirects.MAX_REDIRECT_URIS} redirect URIs.")]
    reasons = ((index, redirects.describe_refusal(uri, kind)) for index, uri in enumerate(uris))
    return [FieldError(f"redirect_uris.{index}", "invalid_value", reason) for index, reason in reasons if reason]
