"""Publication of agreements by operators, and notices to the vendors who must accept them."""

from dataclasses import dataclass, replace

from domain.agreements.model import (
    MAX_GRACE_DAYS,
    MAX_TITLE_CHARS,
    Agreement,
    AgreementKind,
    compute_text_hash,
    normalise_text,
)
from domain.agreements.ports import AgreementRegistry
from domain.audit.model import AuditedFields
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, InvalidRequest
from domain.kernel.ids import new_id
from domain.kernel.tenancy import AuditContext, Tenant
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgRegistry
from domain.orgs.usecases.service import list_managers
from domain.outbox.usecases import OutgoingMail
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

_AUDITED = AuditedFields("agreement", ("kind", "version", "title", "sha256", "published_at", "accept_by"))
_NOTICE = (
    "Hello,\n\n{title} (version {version}) applies to {organisation}. An owner or admin must accept it{deadline}:\n"
    "{base}/console/organisation/agreement\n\n{consequence}\n"
)


@dataclass(frozen=True, slots=True)
class AgreementPublisher:
    """Use cases of operators. `base_url` is the start of the addresses in notices."""

    registry: AgreementRegistry
    orgs: OrgRegistry
    uow: UnitOfWork
    mail: OutgoingMail
    clock: Clock
    base_url: str

    async def publish(self, kind: AgreementKind, title: str, raw: bytes, grace_days: int) -> Agreement:
        """Publish the text in a file as the newest version of an agreement.

        Raises:
            InvalidRequest: The text, title or number of days is invalid.
            Conflict: The newest version has the same text, or another version was published at the same time.
        """
        text, title = normalise_text(raw), " ".join(title.split())
        if not 0 < len(title) <= MAX_TITLE_CHARS or not title.isprintable():
            raise InvalidRequest(f"The title must have 1 to {MAX_TITLE_CHARS} characters.")
        if not 0 <= grace_days <= MAX_GRACE_DAYS:
            raise InvalidRequest(f"The grace period must have 0 to {MAX_GRACE_DAYS} days.")
        newest, digest = await self.registry.get_newest(kind), compute_text_hash(text)
        if newest is not None and newest.sha256 == digest:
            raise Conflict(f"The newest version ({newest.version}) has the same text. Publish a changed text.")
        agreement = Agreement(
            id=new_id("agr"),
            kind=kind,
            version=newest.version + 1 if newest is not None else 1,
            title=title,
            text=text,
            sha256=digest,
            published_at=self.clock.now(),
            grace_days=grace_days,
        )
        if not await self.registry.publish(agreement):
            raise Conflict("Another version was published at the same time. Check it, then run the command again.")
        return agreement

    async def notify_vendors(self, agreement: Agreement, context: AuditContext) -> int:
        """Record the publication in each vendor's audit log, and mail its owners and admins; return the number of vendors."""
        vendors = [org for org in await self.orgs.list_by_name("") if org.is_vendor]
        for org in vendors:
            async with self.uow.begin(Tenant(org.id, True), replace(context, is_reversible=False)) as tx:
                await tx[AuditLog].add(_AUDITED.describe_creation(agreement))
                managers = await list_managers(tx)
            for member in managers:
                await self.mail.add_message(
                    member.email, f"Please accept: {agreement.title}", self._build_notice(agreement, org), "agreement"
                )
        return len(vendors)

    def _build_notice(self, agreement: Agreement, org: Organisation) -> str:
        deadline, consequence = "", "Until then, your catalogue cannot be published."
        if agreement.version > 1:
            deadline = f" by {agreement.accept_by:%d %B %Y %H:%M} UTC"
            consequence = "If you have accepted an earlier version, it counts until then."
        return _NOTICE.format(
            title=agreement.title,
            version=agreement.version,
            organisation=org.name,
            deadline=deadline,
            base=self.base_url.rstrip("/"),
            consequence=consequence,
        )
