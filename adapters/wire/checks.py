"""JSON of stock checks."""

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
        "quantity": optional(integer(4, description="Omitted if the source does not state it.")),
        "checked_at": optional(timestamp("When the source answered; omitted until then.")),
        "failure": optional(
            failure(
                "not_checkable",
                "The source's connector does not support stock checks.",
                "Why the offer could not be checked; it is unchanged.",
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
        "results": parts(_RESULT, lambda check: check.results, "One result for each offer that is not withdrawn."),
    },
)
