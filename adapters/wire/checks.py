"""The JSON of stock checks."""

from adapters.wire.products import AVAILABILITY
from adapters.wire.resource import Resource, parts
from domain.checks.model import CheckResult, CheckStatus, StockCheck
from domain.kernel.resource import optional
from domain.kernel.schema import enum, failure, id_of, integer, named, timestamp

_RESULT = Resource[CheckResult](
    None,
    {
        "source": id_of("src"),
        "offer": id_of("ofr"),
        "availability": AVAILABILITY,
        "quantity": optional(integer(4, description="Left out where it is not known.")),
        "checked_at": optional(timestamp("When the source answered; left out while it has not.")),
        "failure": optional(
            failure(
                "not_checkable",
                "The source's connector cannot ask.",
                "Why there is no answer for this offer; it stays as it was.",
            )
        ),
    },
)
STOCK_CHECK = Resource[StockCheck](
    "stock_check",
    {
        "id": id_of("chk"),
        "variant": id_of("var"),
        "status": named("stock_check_status", enum(*CheckStatus)),
        "results": parts(_RESULT, lambda check: check.results, "One for each offer that is not withdrawn."),
    },
)
