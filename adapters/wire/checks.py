"""The JSON of stock checks."""

from typing import Final

from adapters.wire.products import AVAILABILITY
from adapters.wire.resource import Resource, parts
from adapters.wire.schema import enum, id_of, integer, nullable, record, text, timestamp
from domain.checks.model import CheckResult, CheckStatus, StockCheck

_RESULT: Final = Resource[CheckResult](
    None,
    {
        "source": id_of("src"),
        "offer": id_of("ofr"),
        "availability": AVAILABILITY,
        "quantity": nullable(integer(4, description="Null where it is not known.")),
        "checked_at": nullable(timestamp("When the source answered; null while it has not.")),
        "failure": nullable(
            record(
                None,
                {"code": text("not_checkable"), "message": text("The source's connector cannot ask.", longest=2000)},
                description="Why there is no answer for this offer; it stays as it was.",
            )
        ),
    },
)
STOCK_CHECK: Final = Resource[StockCheck](
    "stock_check",
    {
        "id": id_of("chk"),
        "variant": id_of("var"),
        "status": enum(*CheckStatus),
        "results": parts(_RESULT, lambda check: check.results, "One for each offer that is not withdrawn."),
    },
)
