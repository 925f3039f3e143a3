"""The operations that proposals stand for, and the states of their subjects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from domain.agents.usecases.variant_groups import VariantGrouper
from domain.audit.model import AuditAct
from domain.catalogue.category_rules import CategoryRules
from domain.kernel.errors import UndoUnavailable
from domain.kernel.json_values import to_json_value
from domain.mappings.model import SourceMapping
from domain.mappings.ports import MappingStore
from domain.mappings.usecases import MappingService
from domain.proposals.model import Proposal, ProposalKind
from domain.runs.sheets import compute_settings_digest
from domain.runs.usecases.category_rules import CategoryRuleService
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.sources.usecases.service import SourceService
from ports.unit_of_work import Tx

CONFIRM_MAPPING = "mappings.confirm"
SET_CATEGORIES = "runs.set_categories"
CREATE_SOURCE = "sources.create"
GROUP_PRODUCTS = "matching.group_products"
OPERATIONS = (CONFIRM_MAPPING, SET_CATEGORIES, CREATE_SOURCE, GROUP_PRODUCTS)
"""IDs of the operations that proposals can stand for."""
IMMUTABLE = "-"
"""Fingerprint of subjects that do not change."""
_SOURCE_STAYS = "A source cannot be removed, because imported data depends on it. Set its status to paused instead."


def compute_mapping_fingerprint(source: Source, mapping: SourceMapping) -> str:
    """Return a hash of a mapping and of the settings with which its source's files are read."""
    state = (
        mapping.status,
        to_json_value(mapping.columns),
        to_json_value(mapping.unmapped),
        compute_settings_digest(source, mapping.stream),
    )
    return blake2b(repr(state).encode(), digest_size=16).hexdigest()


def compute_rules_fingerprint(rules: CategoryRules | None) -> str:
    """Return the version of a source's category rules; `0` without rules."""
    return str(rules.version if rules is not None else 0)


@dataclass(frozen=True, slots=True)
class AreaChanges:
    """Implementation of ProposedChanges with the use cases of the areas.

    Attributes:
        decoders: Functions that convert bodies of operations to commands of their use cases, by ID of the operation.
    """

    mappings: MappingService
    category_rules: CategoryRuleService
    sources: SourceService
    grouper: VariantGrouper
    decoders: Mapping[str, Callable[[Any], Any]]

    async def lock_subject(self, tx: Tx, proposal: Proposal) -> str | None:
        """Lock what the proposal changes, and return the fingerprint of its subject; None if the subject does not exist."""
        if proposal.kind == ProposalKind.VARIANT_GROUP:
            return await self.grouper.lock_variants(tx, self.decoders[GROUP_PRODUCTS](proposal.change))
        if proposal.kind not in (ProposalKind.MAPPING, ProposalKind.CATEGORY_RULES) or proposal.source is None:
            return IMMUTABLE
        source = await tx[SourceStore].get(proposal.source, lock=True)
        if source is None:
            return None
        if proposal.kind == ProposalKind.CATEGORY_RULES:
            return compute_rules_fingerprint(await tx.store(CategoryRules).get(source.id, lock=True))
        mapping = await tx[MappingStore].get(proposal.subject.id, lock=True)
        return None if mapping is None else compute_mapping_fingerprint(source, mapping)

    async def apply(self, tx: Tx, proposal: Proposal) -> None:
        """Execute the operation with the proposed change. Raises the errors of the operation."""
        command = self.decoders[proposal.operation or ""](proposal.change)
        if proposal.operation == CONFIRM_MAPPING:
            await self.mappings.confirm_mapping(tx, proposal.subject.id, command)
        elif proposal.operation == SET_CATEGORIES:
            await self.category_rules.change_rules(tx, proposal.subject.id, command)
        elif proposal.operation == GROUP_PRODUCTS:
            await self.grouper.group_products(tx, command)
        else:
            await self.sources.create(tx, command)

    async def undo(self, tx: Tx, operation: str, act: AuditAct) -> None:
        """Undo an act that executed the operation. Raises UndoUnavailable for a source, and the errors of the use cases."""
        if operation == CONFIRM_MAPPING:
            await self.mappings.undo_confirmation(tx, act)
        elif operation == SET_CATEGORIES:
            await self.category_rules.undo(tx, act)
        elif operation == GROUP_PRODUCTS:
            await self.grouper.undo(tx, act)
        else:
            raise UndoUnavailable(_SOURCE_STAYS)
