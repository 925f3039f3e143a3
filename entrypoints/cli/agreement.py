"""Commands for agreements, which vendors accept in the console (docs/agreements.md)."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from domain.agreements.model import MAX_TEXT_BYTES, Agreement, AgreementKind
from domain.agreements.ports import AgreementRegistry
from domain.agreements.usecases.publication import AgreementPublisher
from domain.kernel.tenancy import AuditContext
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, select_attributes
from entrypoints.errors import CommandError
from entrypoints.provisioning import OPERATOR


async def publish(
    file: Path,
    /,
    *,
    kind: Annotated[str, Parameter(choices=tuple(map(str, AgreementKind)))],
    title: str,
    grace_days: int = 30,
    options: CommandOptions = DEFAULT_OPTIONS,
) -> int:
    """Publish a new version of an agreement, and mail the owners and admins of vendors that they must accept it.

    Args:
        file: Path of the text in Markdown (UTF-8, at most 1 MiB).
        kind: Kind of the agreement.
        title: Title of the agreement.
        grace_days: Number of days in which the acceptance of an earlier version is sufficient.
    """
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}. Check the path.") from None
    async with options.open_dependencies() as dependencies:
        publisher = dependencies[AgreementPublisher]
        agreement = await publisher.publish(AgreementKind(kind), title, raw, grace_days)
        vendors = await publisher.notify_vendors(agreement, AuditContext(OPERATOR, "agreements.publish"))
    return options.print_result(
        _build_agreement_json(agreement) | {"notified_vendors": vendors},
        f"Published version {agreement.version} of {agreement.kind} ({agreement.sha256}); {vendors:,} vendors notified.",
    )


async def list_versions(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """List the versions of agreements, the newest version of each first."""
    async with options.open_dependencies() as dependencies:
        versions = await dependencies[AgreementRegistry].list_versions()
    lines = [
        f"{row.kind}  {row.version:<4} {row.published_at:%Y-%m-%d %H:%M}  {row.grace_days:>3} days  {row.title}"
        for row in versions
    ]
    result = {"agreements": [_build_agreement_json(row) for row in versions]}
    return options.print_result(result, *lines or ["No agreement is published."])


def _build_agreement_json(agreement: Agreement) -> dict[str, Any]:
    """Return a version of an agreement as JSON, without its text."""
    names = ("kind", "version", "title", "sha256", "published_at", "grace_days")
    return {"agreement": agreement.id, **select_attributes(agreement, *names)}
