"""JSON of credit: balance, entries, rates and settings."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from adapters.api_json.resource import JsonResource, create_nested_field, create_nested_list_field
from domain.credits.model import (
    CreditBalance,
    CreditEntry,
    CreditLot,
    CreditRate,
    CreditRates,
    CreditSettings,
    EntryKind,
)
from domain.kernel.resource import RenderContext, computed
from domain.kernel.schema import enum, id_schema, integer, response_object, text, timestamp, with_title
from domain.kernel.tenancy import Tenant

_OBJECT_BY_PREFIX: Final[Mapping[str, str]] = {"crp": "credit_purchase", "use": "model_use", "aud": "audit_event"}
_REFERENCE = with_title(
    "credit_reference",
    response_object(
        None,
        {"object": enum(*_OBJECT_BY_PREFIX.values()), "id": text("crp_01J8ZQ5T3V7XK2M9RB4CDW", max_length=40)},
        description="The cause: a purchase, a use of a language model, or an audit entry of an adjustment.",
    ),
)


def _render_reference(entry: CreditEntry, _: RenderContext) -> dict[str, str]:
    prefix = entry.reference.partition("_")[0]
    return {"object": _OBJECT_BY_PREFIX.get(prefix, prefix), "id": entry.reference}


CREDIT_SETTINGS = JsonResource.from_dataclass(
    CreditSettings,
    "credit_settings",
    path="/v1/billing/credits/settings",
    description="Settings of credit in this mode.",
)
CREDIT_LOT = JsonResource[CreditLot](
    None,
    {
        "id": id_schema("crl"),
        "remaining_micros": integer(8_400_000, minimum=0, description="Credit that is neither spent nor reserved."),
        "expires_at": timestamp(),
    },
    title="credit_lot",
)
CREDIT_BALANCE = JsonResource[CreditBalance](
    "credit_balance",
    {
        "available_micros": integer(
            8_400_000, minimum=0, description="Available credit, in millionths of a US dollar."
        ),
        "reserved_micros": integer(120_000, minimum=0, description="Credit that is reserved for running requests."),
        "lots": create_nested_list_field(
            CREDIT_LOT, lambda balance: balance.lots, "Lots with remaining credit, the earliest expiry first."
        ),
        "settings": create_nested_field(CREDIT_SETTINGS, lambda balance: balance.settings),
    },
    path="/v1/billing/credits",
    description="Prepaid credit of the organisation in this mode.",
)
CREDIT_ENTRY = JsonResource[CreditEntry](
    "credit_entry",
    {
        "id": id_schema("cre"),
        "kind": enum(*EntryKind),
        "amount_micros": integer(-12_500, description="Change of the available credit, in millionths of a US dollar."),
        "balance_micros": integer(8_400_000, minimum=0, description="Available credit after the change."),
        "lot": id_schema("crl"),
        "reference": computed(_REFERENCE, _render_reference),
        "at": timestamp(),
    },
    path="/v1/billing/credits/entries/{id}",
    description="One change of the available credit. `spend` is posted when credit is reserved, `release` when less was used.",
)


_RATE_FIELDS: Final[Mapping[str, Any]] = {
    "model": text("small-1", max_length=100),
    "input_micros_per_1k": integer(250, minimum=0, description="Millionths of a US dollar per 1,000 input tokens."),
    "output_micros_per_1k": integer(2_000, minimum=0, description="Millionths of a US dollar per 1,000 output tokens."),
}
_RATE = JsonResource[CreditRate](None, _RATE_FIELDS, title="credit_rate")
_ANNOUNCED_RATE = JsonResource[CreditRate](
    None, {**_RATE_FIELDS, "effective_at": timestamp()}, title="announced_credit_rate"
)
CREDIT_RATES = JsonResource[CreditRates](
    "credit_rates",
    {
        "models": create_nested_list_field(_RATE, lambda rates: rates.models, "The rates that apply now."),
        "announced": create_nested_list_field(
            _ANNOUNCED_RATE, lambda rates: rates.announced, "Rates that apply later, the earliest first for each model."
        ),
    },
    path="/v1/billing/credits/rates",
    description="Rates at which language models use credit. A rise is announced 30 days in advance.",
)


def render_balance(balance: CreditBalance, tenant: Tenant, now: datetime) -> Mapping[str, Any]:
    """Render the balance as the data of an event."""
    return CREDIT_BALANCE.render(balance, RenderContext(tenant, now))


def render_lot(lot: CreditLot, tenant: Tenant, now: datetime) -> Mapping[str, Any]:
    """Render a lot as the data of an event."""
    return CREDIT_LOT.render(lot, RenderContext(tenant, now))
