"""JSON of stock checks."""

from adapters.api_json.products import AVAILABILITY
from adapters.api_json.resource import JsonResource, create_nested_list_field
from domain.checks.model import CheckResult, CheckStatus, StockCheck
from domain.kernel.resource import optional
from domain.kernel.schema import enum, failure, id_schema, integer, timestamp, with_title

_RESULT = JsonResource[CheckResult](
    None,
    {
        "source": id_schema("src"),
        "offer": id_schema("ofr"),
        "availability": AVAILABILITY,
        "quantity": optional(integer(4, description="Omitted if the source does not state the quantity.")),
        "checked_at": optional(timestamp("When the source responded; omitted until then.")),
        "failure": optional(
            failure(
                "not_checkable",
                "The source's connector does not support stock checks. Import the current stock by a run instead.",
                "Why the offer could not be checked; the offer is unchanged.",
            )
        ),
    },
)
STOCK_CHECK = JsonResource[StockCheck](
    "stock_check",
    {
        "id": id_schema("chk"),
        "variant": id_schema("var"),
        "status": with_title("stock_check_status", enum(*CheckStatus)),
        "results": create_nested_list_field(
            _RESULT, lambda check: check.results, "One result for each offer that is not withdrawn."
        ),
    },
)
