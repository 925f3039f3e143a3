"""Commands for prepaid credit (docs/credits.md)."""

from datetime import UTC, date, datetime, time
from typing import Annotated, Any

from cyclopts import Parameter

from adapters.api_json.credits import CREDIT_BALANCE
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.credits.model import MICROS_PER_CREDIT, CreditRate, EntryKind, compute_expiry
from domain.credits.ports import CreditRateRegistry
from domain.credits.usecases.ledger import CreditLedger
from domain.credits.usecases.rates import RateService
from domain.kernel.errors import DomainError
from domain.kernel.ids import new_id
from domain.kernel.resource import RenderContext
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, Mode, OrganisationOptions, select_attributes
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.settings import Settings
from ports.clock import Clock


async def show(*, mode: Mode = "live", options: OrganisationOptions) -> int:
    """Show an organisation's credit.

    Args:
        mode: Mode of the credit.
    """
    async with options.begin_change("credits.show", mode) as (dependencies, organisation, tx):
        balance = await dependencies[CreditLedger].get_balance(tx)
        result = CREDIT_BALANCE.render(balance, RenderContext(tx.tenant, tx.now))
    lines = [f"{lot.id}  ${lot.remaining_micros / 1e6:,.2f} until {lot.expires_at:%Y-%m-%d}" for lot in balance.lots]
    total = f"{organisation.name}: ${balance.available_micros / 1e6:,.2f} available, ${balance.reserved_micros / 1e6:,.2f} reserved"
    return options.print_result(result, total, *lines)


async def add(
    *, credits: int, reason: str, expires: date | None = None, mode: Mode = "live", options: OrganisationOptions
) -> int:
    """Add credit to an organisation as an adjustment.

    Args:
        credits: Number of credits; a credit is one cent (USD).
        reason: Reason, for the audit log.
        expires: Day (UTC) at whose start the credit expires (default: in a year).
        mode: Mode of the credit.
    """
    if not 0 < credits <= 10**9:
        raise CommandError("The number of credits must be from 1 to 1,000,000,000. Change --credits.")
    async with options.begin_change("credits.add", mode) as (dependencies, organisation, tx):
        expires_at = datetime.combine(expires, time(), UTC) if expires else compute_expiry(tx.now)
        if expires_at <= tx.now:
            raise CommandError("The day of expiry must be in the future. Change --expires.")
        after = {"credits": credits, "reason": reason, "expires_at": expires_at.isoformat()}
        lot = new_id("crl")
        reference = await tx[AuditLog].add(Change("credit_lot", lot, "create", {}, after))
        await dependencies[CreditLedger].add_lot(
            tx, EntryKind.ADJUSTMENT, credits * MICROS_PER_CREDIT, reference, expires_at, lot
        )
    return options.print_result(
        {"org": organisation.id, "reference": reference, **after},
        f"Added {credits:,} credits to {organisation.name}; they expire on {expires_at:%Y-%m-%d}.",
    )


async def list_rates(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """List the rates of language models per 1,000 tokens, and announced ones."""
    async with options.open_dependencies() as dependencies:
        rates = await _create_service(dependencies).list_rates()
    lines = [f"{_describe(rate)} micro-US-dollars" for rate in rates.models]
    lines += [f"{_describe(rate)} micro-US-dollars from {rate.effective_at:%Y-%m-%d}" for rate in rates.announced]
    result = {
        "models": [_build_rate_json(rate) for rate in rates.models],
        "announced": [_build_rate_json(rate) for rate in rates.announced],
    }
    return options.print_result(result, *lines or ["No model has a rate."])


async def set_rate(
    *,
    model: str,
    input: int,
    output: int,
    start: Annotated[date | None, Parameter("--from")] = None,
    options: CommandOptions = DEFAULT_OPTIONS,
) -> int:
    """Set the rate of a language model; a rise must be announced 30 days in advance.

    Args:
        model: Name of the model.
        input: Micro-US-dollars per 1,000 input tokens.
        output: Micro-US-dollars per 1,000 output tokens.
        start: Day (UTC) from which the rate applies (default: now).
    """
    if min(input, output) < 0:
        raise CommandError("A rate must not be negative. Change --input or --output.")
    async with options.open_dependencies() as dependencies:
        effective_at = datetime.combine(start, time(), UTC) if start else None
        try:
            rate = await _create_service(dependencies).set_rate(model, input, output, effective_at)
        except DomainError as error:
            raise CommandError(f"{error} Change --from.") from error
    return options.print_result(
        _build_rate_json(rate), f"{_describe(rate)} micro-US-dollars from {rate.effective_at:%Y-%m-%d}"
    )


def _create_service(dependencies: Dependencies) -> RateService:
    return RateService(dependencies[CreditRateRegistry], dependencies[Clock], dependencies[Settings].token_prices)


def _describe(rate: CreditRate) -> str:
    return f"{rate.model:<24} input {rate.input_micros_per_1k:>8,}  output {rate.output_micros_per_1k:>8,}"


def _build_rate_json(rate: CreditRate) -> dict[str, Any]:
    return select_attributes(rate, "model", "input_micros_per_1k", "output_micros_per_1k", "effective_at")
