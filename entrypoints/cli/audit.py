"""`joinery audit verify`: verification of the audit chains."""

from typing import Any

from domain.audit.chain import ChainFault, ChainReport, FaultKind
from domain.audit.usecases import AuditService
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgRegistry
from entrypoints.cli.store import DEFAULT, Mode, Store, attributes, find_organisation
from entrypoints.errors import CommandError
from ports.unit_of_work import UnitOfWork


async def verify(
    *,
    org: str | None = None,
    noted: tuple[str, ...] = (),
    mode: Mode | None = None,
    store: Store = DEFAULT,
) -> int:
    """Check that no audit entry was changed, removed, inserted or moved; exit with 1 if one was.

    Checks the chains of all organisations. Store the printed hash of a chain's head elsewhere and check it again later: only
    this detects that a whole chain was rewritten.

    Args:
        org: only this organisation: its ID, or its name if that is unique
        noted: N:HASH: entry N must have this hash (with --org and --mode); repeatable
        mode: only this mode
    """
    if noted and not (org and mode):
        raise CommandError("--noted applies to one chain. Select it with --org and --mode.")
    try:
        hashes = {int(number): bytes.fromhex(hash) for number, _, hash in (entry.partition(":") for entry in noted)}
    except ValueError:
        raise CommandError("--noted takes an entry number and its hash, for example 4711:9f86d081….") from None
    reports = []
    async with store.open() as parts:
        for organisation in [await find_organisation(parts, org)] if org else await parts[OrgRegistry].named(""):
            for livemode in [mode == "live"] if mode else [True, False]:
                async with parts[UnitOfWork].read(Tenant(organisation.id, livemode)) as tx:
                    reports.append(await AuditService().verify(tx, hashes))
    whole = not any(report.faults for report in reports)
    answer = {"whole": whole, "chains": [_report_json(report) for report in reports]}
    store.answer(answer, *(map(_describe_report, reports) if reports else ["No organisations."]))
    return 0 if whole else 1


def _report_json(report: ChainReport) -> dict[str, Any]:
    return attributes(report, "entries", "faults", "more") | {
        "organisation": report.tenant.org,
        "mode": report.tenant.mode,
        "before_the_chain": report.before,
        "last": report.head.last,
        "hash": report.head.hash.hex(),
    }


def _describe_report(report: ChainReport) -> str:
    head = f"{report.tenant.org} {report.tenant.mode}: "
    before = f", {report.before} older than the chain" if report.before else ""
    if not report.faults:
        head_hash = f"; entry {report.head.last} has the hash {report.head.hash.hex()}" if report.entries else ""
        return f"{head}intact, {report.entries} entries{before}{head_hash}"
    details = "".join(f"\n  {_describe_fault(fault)}" for fault in report.faults)
    details += f"\n  and {report.more:,} more" if report.more else ""
    return f"{head}NOT INTACT, {report.entries} valid entries{before}{details}"


_DESCRIPTIONS = {
    FaultKind.CHANGED: "was changed",
    FaultKind.MISSING: "missing",
    FaultKind.REORDERED: "was moved",
    FaultKind.INSERTED: "was inserted",
    FaultKind.UNCHECKED: "is no longer stored, so its noted hash cannot be checked",
}


def _describe_fault(fault: ChainFault) -> str:
    number = f"{fault.sequence}" if fault.until in (None, fault.sequence) else f"{fault.sequence} to {fault.until}"
    return f"{number}{f' ({fault.entry})' if fault.entry else ''}: {_DESCRIPTIONS[fault.kind]}"
