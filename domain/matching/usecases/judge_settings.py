"""What people set of the judge."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from domain.audit.ports import AuditLog
from domain.jobs.ports import JobStore
from domain.kernel.errors import ModelUnpriced, PreconditionFailed, Unprocessable
from domain.matching.judging import judging
from domain.matching.model import SETTINGS, SETTINGS_AUDITED, JudgeSettings, JudgeSettingsChange
from ports.unit_of_work import Tx

MOST_BUDGET: Final = 10**12
LEAST_SURE: Final = 0.5
"""An answer that is less sure than this may do nothing by itself."""
NOBODY: Final = "No model is configured on this service, so there is nobody who could judge; the operator sets one by JOINERY_MODELS."


async def settings_of(tx: Tx) -> JudgeSettings:
    """The tenant's settings; the defaults until somebody sets them."""
    return await tx.store(JudgeSettings).get(SETTINGS) or JudgeSettings()


@dataclass(frozen=True, slots=True)
class JudgeSettingsService:
    """One row a tenant. `offers` tells whether a model (None: the service's own) can be asked; None where nobody can be."""

    offers: Callable[[str | None], bool] | None

    async def get(self, tx: Tx) -> JudgeSettings:
        """The settings as they hold."""
        return await settings_of(tx)

    async def update(self, tx: Tx, asked: JudgeSettingsChange, expected: int | None = None) -> JudgeSettings:
        """Change them; `expected` is the version they must be at, or None for any. What is open is judged from then on.

        Raises PreconditionFailed; ModelUnpriced; Unprocessable for values out of range, and for switching it on where no
        model is configured.
        """
        stored = await tx.store(JudgeSettings).get(SETTINGS, lock=True)
        before = stored or JudgeSettings()
        if expected not in (None, before.version):
            raise PreconditionFailed(f"The settings are at version {before.version} by now; read them again.")
        changes: dict[str, Any] = {name: value for name, value in asked.items() if getattr(before, name) != value}
        self._refuse(changes, replace(before, **changes))
        if not changes:
            return before
        made = before.created_at or tx.now
        after = replace(before, **changes, version=before.version + 1, created_at=made, updated_at=tx.now)
        if stored:
            await tx.store(JudgeSettings).save(after)
        else:
            await tx.store(JudgeSettings).add(after)
        await tx[AuditLog].add(SETTINGS_AUDITED.updated(before, after))
        if after.enabled:
            await tx[JobStore].add(judging(tx.tenant, f"settings:{after.version}"))
        return after

    def _refuse(self, changes: dict[str, Any], after: JudgeSettings) -> None:
        """Only what is being changed is looked at, so that judging can always be switched off."""
        for name in ("auto_merge_at", "auto_dismiss_at"):
            if name in changes and not LEAST_SURE <= changes[name] <= 1:
                raise Unprocessable.of(name, "invalid_value", f"Must be from {LEAST_SURE} to 1.")
        if not 0 <= after.daily_budget_micros <= MOST_BUDGET:
            raise Unprocessable.of("daily_budget_micros", "invalid_value", f"Must be from 0 to {MOST_BUDGET}.")
        if changes.get("enabled") and self.offers is None:
            raise Unprocessable.of("enabled", "invalid_value", NOBODY)
        needs_model = changes.get("model") is not None or changes.get("enabled")
        if needs_model and (self.offers is None or not self.offers(after.model)):
            unpriced = "The model has no price on this service; null chooses the service's own model."
            raise ModelUnpriced.of("model", "invalid_value", unpriced if self.offers else NOBODY)
