"""`joinery audit verify`: whether every organisation's audit entries are as they were written."""

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
    """Check that no audit entry was changed, taken out, put in or moved; exit with 1 if one was.

    Checks the chains of all organisations. What was printed of a chain's head earlier, by this command or as the hash of
    an entry, can be noted elsewhere and checked again: who rewrites a whole chain is found by that alone.

    Args:
        org: only this organisation's: its id, or its name if that is unique
        noted: N:HASH: entry N must have this hash (with --org and --mode); again for more
        mode: only this mode's
    """
    if noted and not (org and mode):
        raise CommandError("--noted is of one chain: name it with --org and --mode.")
    try:
        hashes = {int(number): bytes.fromhex(hash) for number, _, hash in (one.partition(":") for one in noted)}
    except ValueError:
        raise CommandError("--noted takes an entry's number and its hash, as in 4711:9f86d081…") from None
    reports = []
    async with store.open() as parts:
        for organisation in [await find_organisation(parts, org)] if org else await parts[OrgRegistry].named(""):
            for livemode in [mode == "live"] if mode else [True, False]:
                async with parts[UnitOfWork].read(Tenant(organisation.id, livemode)) as tx:
                    reports.append(await AuditService().verify(tx, hashes))
    whole = not any(report.faults for report in reports)
    answer = {"whole": whole, "chains": [_json(report) for report in reports]}
    store.answer(answer, *(map(_sentence, reports) if reports else ["There is no organisation yet."]))
    return 0 if whole else 1


def _json(report: ChainReport) -> dict[str, Any]:
    return attributes(report, "entries", "faults", "more") | {
        "organisation": report.tenant.org,
        "mode": report.tenant.mode,
        "before_the_chain": report.before,
        "last": report.head.last,
        "hash": report.head.hash.hex(),
    }


def _sentence(report: ChainReport) -> str:
    head = f"{report.tenant.org} {report.tenant.mode}: "
    before = f", {report.before} from before the chain" if report.before else ""
    if not report.faults:
        end = f"; entry {report.head.last} has the hash {report.head.hash.hex()}" if report.entries else ""
        return f"{head}whole, {report.entries} entries{before}{end}"
    told = "".join(f"\n  {_fault(fault)}" for fault in report.faults)
    told += f"\n  and {report.more:,} more" if report.more else ""
    return f"{head}NOT WHOLE, {report.entries} entries hold{before}{told}"


_WORDS = {
    FaultKind.CHANGED: "is not as it was written",
    FaultKind.MISSING: "missing",
    FaultKind.REORDERED: "does not stand where it was written",
    FaultKind.INSERTED: "was put in",
    FaultKind.UNCHECKED: "is not kept any more, so what was noted of it cannot be compared",
}


def _fault(fault: ChainFault) -> str:
    number = f"{fault.sequence}" if fault.until in (None, fault.sequence) else f"{fault.sequence} to {fault.until}"
    return f"{number}{f' ({fault.entry})' if fault.entry else ''}: {_WORDS[fault.kind]}"
