"""Use cases of agreements for organisations: read, accept, and determine the standing."""

from typing import NoReturn

from domain.agreements.model import (
    AUDITED_ACCEPTANCE_FIELDS,
    Agreement,
    AgreementAcceptance,
    AgreementKind,
    AgreementStanding,
    AgreementState,
    NewAcceptance,
    Signer,
    compute_standing,
)
from domain.agreements.ports import AgreementStore
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.orgs.ports import OrgStore
from domain.people.usecases.sessions import ClientInfo
from ports.unit_of_work import Tx


class AgreementService:
    """Use cases of agreements in a tenant's transaction."""

    async def get_state(self, tx: Tx, kind: str) -> AgreementState:
        """Return the newest version, the newest acceptance and the standing. Raises NotFound for an unknown kind."""
        known_kind = _require_kind(kind)
        newest = await tx[AgreementStore].get_newest(known_kind)
        acceptance = await tx[AgreementStore].find_newest_acceptance(known_kind)
        return AgreementState(known_kind, newest, acceptance, compute_standing(newest, acceptance, tx.now))

    async def get_standing(self, tx: Tx, kind: AgreementKind) -> AgreementStanding:
        """Return the organisation's standing."""
        return (await self.get_state(tx, kind)).standing

    async def list_acceptances(self, tx: Tx, request: PageRequest) -> Page[AgreementAcceptance]:
        """Return a page of the organisation's acceptances, newest first."""
        return await tx[AgreementStore].page(request)

    async def accept(
        self, tx: Tx, kind: str, new: NewAcceptance, user: str | None, client: ClientInfo
    ) -> AgreementAcceptance:
        """Accept the newest version; return the acceptance, which is an earlier one if the version is already accepted.

        Args:
            tx: The transaction.
            kind: The kind of agreement.
            new: What is accepted, by whom.
            user: ID of the user who acts, also through an app; None for a credential without a user.
            client: The browser or program of the user.

        Raises:
            NotFound: The kind of agreement does not exist.
            PermissionDenied: The user is not an owner or admin of the organisation.
            InvalidRequest: The authority is not confirmed, or the name or title is not readable.
            Conflict: The version or hash is not that of the newest version.
        """
        known_kind = _require_kind(kind)
        await _require_manager(tx, user)
        if not new.authority_confirmed:
            raise InvalidRequest.for_field(
                "authority_confirmed",
                "invalid_value",
                "Confirm with true that you may accept the agreement for the organisation. Otherwise ask a person who may.",
            )
        signer = Signer(
            user or "", _clean_text("signer_name", new.signer_name), _clean_text("signer_title", new.signer_title)
        )
        # the lock makes simultaneous acceptances wait, so that the second returns the first acceptance
        earlier = await tx[AgreementStore].find_newest_acceptance(known_kind, lock=True)
        newest = await tx[AgreementStore].get_newest(known_kind)
        if newest is None or (new.version, new.sha256) != (newest.version, newest.sha256):
            _refuse_stale(known_kind, newest)
        if earlier is not None and earlier.version == newest.version:
            return earlier
        acceptance = AgreementAcceptance(
            id=new_id("acc"),
            agreement=newest.id,
            kind=newest.kind,
            version=newest.version,
            sha256=newest.sha256,
            signer=signer,
            authority_confirmed=True,
            ip=client.address or None,
            user_agent=client.user_agent or None,
            accepted_at=tx.now,
        )
        await tx[AgreementStore].add(acceptance)
        await tx[AuditLog].add(AUDITED_ACCEPTANCE_FIELDS.describe_creation(acceptance))
        return acceptance


def _require_kind(kind: str) -> AgreementKind:
    """Return the kind of agreement. Raises NotFound if it does not exist."""
    if kind not in tuple(AgreementKind):
        raise NotFound
    return AgreementKind(kind)


async def _require_manager(tx: Tx, user: str | None) -> None:
    """Raise PermissionDenied if the user's current role, which is locked, is neither owner nor admin."""
    # Not the actor but the user counts, because an app acts on behalf of a person.
    member = (await tx[OrgStore].lock_members((user,))).get(user) if user is not None else None
    if member is None or not member.is_manager:
        raise PermissionDenied("Only owners and admins can accept an agreement. Ask one of them to accept it.")


def _clean_text(field: str, text: str) -> str:
    """Return the text with single spaces. Raises InvalidRequest if it is blank or contains invisible characters."""
    cleaned = " ".join(text.split())
    if not cleaned or not cleaned.isprintable():
        raise InvalidRequest.for_field(field, "invalid_value", "Enter text without invisible characters.")
    return cleaned


def _refuse_stale(kind: AgreementKind, newest: Agreement | None) -> NoReturn:
    """Raise Conflict for a version or hash that is not that of the newest version."""
    if newest is None:
        raise Conflict("No version of this agreement is published yet. Try again later.")
    raise Conflict(
        f"Version {newest.version} is the newest. Read it with GET /v1/agreements/{kind}, then send its version and sha256."
    )
