"""Budgets and records of uses of language models, which all tasks share."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from domain.kernel.errors import ModelUnpriced
from domain.kernel.ids import new_id
from domain.kernel.paging import Filter, PageRequest
from domain.usage.meters import AI_TOKENS
from domain.usage.model import ModelUse
from domain.usage.ports import UsageMeters
from ports.language_models import ModelUsage
from ports.unit_of_work import Tx

NO_MODEL_MESSAGE = "No language model is configured on this service. The operator can set one with JOINERY_MODELS."
_UNPRICED = "The operator has not set a price for this language model. Choose another model, or no model (null) for the default one."


@dataclass(frozen=True, slots=True)
class _UseFilter(Filter):
    """Condition of a list of model uses."""

    task: str


def require_priced_model(has_price: Callable[[str | None], bool] | None, model: str | None) -> None:
    """Raise ModelUnpriced if a model (None for the default model) has no price; `has_price` is None without configured models."""
    if has_price is None or not has_price(model):
        raise ModelUnpriced.for_field("model", "invalid_value", _UNPRICED if has_price else NO_MODEL_MESSAGE)


def find_start_of_day(time: datetime) -> datetime:
    """Return the start of the day (UTC) that contains the time."""
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


async def load_spent_today(tx: Tx, task: str) -> int:
    """Return the cost of a task since the start of the day (UTC) in millionths of a dollar, without uses paid with credit."""
    # IDs rise with time, so reading stops at the first page with an older entry
    since, total, key = find_start_of_day(tx.now), 0, None
    while True:
        page = await tx.store(ModelUse).page(PageRequest(100, key), _UseFilter(task))
        today = [0 if use.prepaid else use.cost_micros for use in page.items if use.created_at >= since]
        total += sum(today)
        if not page.has_more or len(today) < len(page.items):
            return total
        key = page.next_key


def create_model_use(tx: Tx, task: str, subject: str, usage: ModelUsage) -> ModelUse:
    """Return the use of a model for a task about an object, such as a reserved use; it is not stored."""
    return ModelUse(id=new_id("use"), task=task, subject=subject, created_at=tx.now, **asdict(usage))


async def record_model_use(tx: Tx, task: str, subject: str, usage: ModelUsage | None) -> None:
    """Store the usage of a request, if there is any, and count its tokens.

    Args:
        tx: The transaction.
        task: The purpose of the request.
        subject: ID of the object concerned.
        usage: The usage, or None.
    """
    if usage is None:
        return
    use = create_model_use(tx, task, subject, usage)
    await tx.store(ModelUse).add(use)
    await tx[UsageMeters].add_usage(AI_TOKENS, usage.input_tokens + usage.output_tokens, use.id)


async def replace_reserved_use(tx: Tx, reserved: ModelUse, usage: ModelUsage | None) -> None:
    """Replace the reserved cost of a request by its actual cost; without usage, delete the reserved cost."""
    if usage is None:
        await tx.store(ModelUse).remove(reserved.id)
    else:
        await tx.store(ModelUse).save(replace(reserved, **asdict(usage)))
        await tx[UsageMeters].add_usage(AI_TOKENS, usage.input_tokens + usage.output_tokens, reserved.id)
