"""`joinery audit verify`: whether every organisation's audit entries are as they were written."""

import argparse
from collections.abc import Sequence
from typing import Any

from domain.audit.chain import ChainFault, ChainReport, FaultKind
from domain.audit.usecases import AuditService
from domain.kernel.tenancy import Tenant
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import answered, container, found_organisation
from entrypoints.container import Container


async def verify(options: argparse.Namespace) -> int:
    """Check the chains; answers 1 if any is not whole."""
    noted = _noted(options)
    async with container(options) as parts:
        reports = [await _checked(parts, tenant, noted) for tenant in await _tenants(parts, options)]
    whole = not any(report.faults for report in reports)
    answer = {"whole": whole, "chains": [_json(report) for report in reports]}
    answered(options, answer, "\n".join(map(_sentence, reports)) or "There is no organisation yet.")
    return 0 if whole else 1


def _noted(options: argparse.Namespace) -> dict[int, bytes]:
    """What entries must have as their hashes. Raises CommandError."""
    if options.noted and not (options.org and options.mode):
        raise CommandError("--noted is of one chain: name it with --org and --mode.")
    try:
        pairs = [one.partition(":") for one in options.noted]
        return {int(number): bytes.fromhex(hash) for number, _, hash in pairs}
    except ValueError:
        raise CommandError("--noted takes an entry's number and its hash, as in 4711:9f86d081…") from None


async def _tenants(parts: Container, options: argparse.Namespace) -> Sequence[Tenant]:
    named = [await found_organisation(parts, options.org)] if options.org else await parts.registry().named("")
    modes = [options.mode == "live"] if options.mode else [True, False]
    return [Tenant(organisation.id, livemode) for organisation in named for livemode in modes]


async def _checked(parts: Container, tenant: Tenant, noted: dict[int, bytes]) -> ChainReport:
    async with parts.uow().read(tenant) as tx:
        return await AuditService().verify(tx, noted)


def _json(report: ChainReport) -> dict[str, Any]:
    faults = [
        {"kind": fault.kind, "sequence": fault.sequence}
        | ({"entry": fault.entry} if fault.entry else {})
        | ({"until": fault.until} if fault.until is not None else {})
        for fault in report.faults
    ]
    return {
        "organisation": report.tenant.org,
        "mode": report.tenant.mode,
        "entries": report.entries,
        "before_the_chain": report.before,
        "last": report.head.last,
        "hash": report.head.hash.hex(),
        "faults": faults,
        "more": report.more,
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
