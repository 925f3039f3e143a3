"""The category agent: proposes category rules for products without a category, and queries a language model about unknown paths."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from domain.agents.categories import (
    CATEGORY_TASK,
    INSTRUCTIONS,
    MAX_REQUEST_PATHS,
    CategoryAnswer,
    CategoryAnswers,
    CategoryOrigin,
    ProposedCategory,
    build_answer_schema,
    build_request_data,
    count_paths_without_category,
    is_exact_name,
    parse_answers,
)
from domain.agents.model import Agent
from domain.catalogue.category_rules import CategoryPath, ProductCategory
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.suggestions import LearnedCategories
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.usecases.category_rules import READ_BATCH, StoredCategories, list_source_paths
from domain.usage.model import ModelUse
from domain.usage.model_budget import create_model_use, load_spent_today, replace_reserved_use
from ports.language_models import LanguageModels, ModelPrompt, ModelRefused, ModelUnavailable, ModelUsage
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.agents")
MAX_PRODUCTS = 20_000
"""Maximum number of products of a source that are examined."""
MAX_REQUESTS = 4
"""Maximum number of requests to a model about one run."""
_MODEL_TIMEOUT_SECONDS = 120.0


async def load_product_categories(tx: Tx, source: str) -> list[ProductCategory]:
    """Return the categories of the source's first products, at most MAX_PRODUCTS."""
    products: list[ProductCategory] = []
    after = ""
    while len(products) < MAX_PRODUCTS:
        batch = await tx[CatalogueStore].list_product_categories(source, after, READ_BATCH)
        products += batch
        if len(batch) < READ_BATCH:
            break
        after = batch[-1].id
    return products


def list_candidates(stored: StoredCategories) -> list[ProposedCategory]:
    """Return the suggested categories of a source's paths with their origins. This is slow for thousands of paths."""
    learned = LearnedCategories(stored.other_rules)
    return [
        ProposedCategory(one.path, one.suggestion, _find_origin(one.path, one.suggestion, learned))
        for one in list_source_paths(stored).categories
        if one.suggestion is not None
    ]


def _find_origin(path: CategoryPath, category: str, learned: LearnedCategories) -> CategoryOrigin:
    if learned.find_category(path) == category:
        return CategoryOrigin.RULES
    return CategoryOrigin.NAME if is_exact_name(path, category) else CategoryOrigin.WORDS


def find_unknown_paths(
    products: Sequence[ProductCategory], candidates: Sequence[ProposedCategory], answers: CategoryAnswers | None
) -> list[CategoryPath]:
    """Return the paths of products without a category to send to a model, the most frequent first.

    Omitted are paths with a candidate at or above them, and paths that were sent before.
    """
    known = {one.path for one in candidates} | {one.path for one in (answers.answers if answers else ())}
    return [
        path
        for path, _ in count_paths_without_category(products).most_common()
        if not any(path[:n] in known for n in range(1, len(path) + 1))
    ]


@dataclass(frozen=True, slots=True)
class CategoryRequester:
    """Sends requests about category paths to a language model, within the agent's daily budget.

    The maximum cost of a request is reserved before the request is sent, and corrected after the answer.

    Attributes:
        models: The language models, or None if none is configured.
    """

    uow: UnitOfWork
    models: LanguageModels | None

    async def request_categories(
        self, tenant: Tenant, context: AuditContext, agent: Agent, source: str, paths: Sequence[CategoryPath]
    ) -> None:
        """Send the paths to the model and store its answers; stop if the budget is used up or the model fails."""
        if self.models is None or not self.models.is_configured(agent.model):
            return
        for start in range(0, min(len(paths), MAX_REQUESTS * MAX_REQUEST_PATHS), MAX_REQUEST_PATHS):
            batch = paths[start : start + MAX_REQUEST_PATHS]
            prompt = ModelPrompt(
                CATEGORY_TASK, INSTRUCTIONS, build_request_data(batch), build_answer_schema(batch), agent.model
            )
            if not await self._request_batch(tenant, context, agent, source, batch, prompt):
                return

    async def _request_batch(
        self,
        tenant: Tenant,
        context: AuditContext,
        agent: Agent,
        source: str,
        paths: Sequence[CategoryPath],
        prompt: ModelPrompt,
    ) -> bool:
        """Send one request; return whether further requests may follow."""
        assert self.models is not None
        try:
            max_usage = self.models.estimate_max_usage(prompt)
        except ModelRefused as refusal:
            _LOG.info("model request about categories refused", extra={"source": source, "reason": str(refusal)})
            return False
        async with self.uow.begin(tenant, context) as tx:
            if await load_spent_today(tx, CATEGORY_TASK) + max_usage.cost_micros > agent.daily_budget_micros:
                return False
            use = create_model_use(tx, CATEGORY_TASK, source, max_usage)
            await tx.store(ModelUse).add(use)
        answers: list[CategoryAnswer] = []
        usage: ModelUsage | None
        try:
            async with asyncio.timeout(_MODEL_TIMEOUT_SECONDS):
                output = await self.models.generate(prompt)
        except TimeoutError:
            return False  # the cost is unknown, so the full amount stays reserved
        except (ModelRefused, ModelUnavailable) as failure:
            _LOG.info("model request about categories failed", extra={"source": source, "reason": str(failure)})
            usage = failure.usage
        else:
            answers, usage = parse_answers(output.value, paths), output.usage
        async with self.uow.begin(tenant, context) as tx:
            await replace_reserved_use(tx, use, usage)
            if answers:
                await _store_answers(tx, source, answers)
        return bool(answers)


async def _store_answers(tx: Tx, source: str, answers: Sequence[CategoryAnswer]) -> None:
    store = tx.store(CategoryAnswers)
    before = await store.get(source, lock=True)
    after = (before or CategoryAnswers(source, tx.now, tx.now)).with_answers(answers, tx.now)
    await (store.save(after) if before else store.add(after))
