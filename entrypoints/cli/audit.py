"""`joinery audit verify`: verification of the audit chains."""

from typing import Annotated, Any

from cyclopts import Parameter

from domain.audit.chain import ChainFault, ChainReport, FaultKind
from domain.audit.usecases import AuditService
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgRegistry
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, Mode, find_organisation, select_attributes
from entrypoints.errors import CommandError
from ports.unit_of_work import UnitOfWork


async def verify(
    *,
    org: str | None = None,
    noted: Annotated[tuple[str, ...], Parameter(alias="--expected-hash")] = (),
    mode: Mode | None = None,
    options: CommandOptions = DEFAULT_OPTIONS,
) -> int:
    """Check that no audit entry was changed, removed, inserted or moved; exit with 1 if one was.

    Checks the chains of all organisations. Store the printed hash of a chain's head elsewhere and check it again later: only
    this detects that a whole chain was rewritten.

    Args:
        org: Check only the organisation with this ID or unique name.
        noted: Check that entry N has the hash HASH, as in `4711:9f86d081…`. Requires --org and --mode. Repeatable.
        mode: Check only this mode.
    """
    if noted and not (org and mode):
        raise CommandError("--noted applies to one chain. Select it with --org and --mode.")
    try:
        hashes = {int(number): bytes.fromhex(hash) for number, _, hash in (entry.partition(":") for entry in noted)}
    except ValueError:
        raise CommandError("--noted requires an entry number and its hash, for example 4711:9f86d081….") from None
    reports = []
    async with options.open_dependencies() as dependencies:
        for organisation in (
            [await find_organisation(dependencies, org)] if org else await dependencies[OrgRegistry].list_by_name("")
        ):
            for livemode in [mode == "live"] if mode else [True, False]:
                async with dependencies[UnitOfWork].begin_reading(Tenant(organisation.id, livemode)) as tx:
                    reports.append(await AuditService().verify_chain(tx, hashes))
    is_intact = not any(report.faults for report in reports)
    result = {"whole": is_intact, "chains": [_build_report_json(report) for report in reports]}
    options.print_result(result, *(map(_describe_report, reports) if reports else ["No organisations."]))
    return 0 if is_intact else 1


def _build_report_json(report: ChainReport) -> dict[str, Any]:
    """Return a report as JSON."""
    return select_attributes(report, "faults") | {
        "entries": report.valid_entries,
        "more": report.unlisted_faults,
        "organisation": report.tenant.org,
        "mode": report.tenant.mode,
        "before_the_chain": report.unchained_entries,
        "last": report.head.last,
        "hash": report.head.hash.hex(),
    }


def _describe_report(report: ChainReport) -> str:
    """Describe the result of the verification of one chain."""
    label = f"{report.tenant.org} {report.tenant.mode}: "
    unchained = f", plus {report.unchained_entries} older entries outside the chain" if report.unchained_entries else ""
    if not report.faults:
        head_hash = f"; entry {report.head.last} has the hash {report.head.hash.hex()}" if report.valid_entries else ""
        return f"{label}intact, {report.valid_entries} entries{unchained}{head_hash}"
    details = "".join(f"\n  {_describe_fault(fault)}" for fault in report.faults)
    details += f"\n  and {report.unlisted_faults:,} more" if report.unlisted_faults else ""
    return f"{label}NOT INTACT, {report.valid_entries} valid entries{unchained}{details}"


_DESCRIPTIONS = {
    FaultKind.CHANGED: "was changed",
    FaultKind.MISSING: "is missing",
    FaultKind.REORDERED: "was moved",
    FaultKind.INSERTED: "was inserted",
    FaultKind.UNCHECKED: "is no longer stored, so its noted hash cannot be checked",
}


def _describe_fault(fault: ChainFault) -> str:
    """Describe a fault: the entry numbers and what is wrong with these entries."""
    number = f"{fault.sequence}" if fault.until in (None, fault.sequence) else f"{fault.sequence} to {fault.until}"
    return f"{number}{f' ({fault.entry})' if fault.entry else ''}: {_DESCRIPTIONS[fault.kind]}"
