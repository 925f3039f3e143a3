"""The job in which agents examine a run, a mapping or a website check, test changes on stored data, and propose them.

A proposal is computed without locks, then stored in one transaction, which compares the subject with the state on which the
proof is based. A repeated job stores no second proposal.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from domain.agents.categories import (
    CategoryAnswers,
    CategoryOrigin,
    ProposedCategory,
    count_paths_without_category,
    find_decided_categories,
    prove_categories,
    select_categories,
)
from domain.agents.mapping_proof import assess_risk, build_proof, is_improvement
from domain.agents.model import Agent, AgentKind, Autonomy
from domain.agents.ports import AgentStore
from domain.agents.triage import build_run_note, build_run_proof, build_source_note, has_many_new_problems
from domain.agents.usecases.categories import (
    CategoryRequester,
    find_unknown_paths,
    list_candidates,
    load_product_categories,
)
from domain.agents.usecases.changes import (
    CONFIRM_MAPPING,
    CREATE_SOURCE,
    GROUP_PRODUCTS,
    IMMUTABLE,
    SET_CATEGORIES,
    compute_mapping_fingerprint,
    compute_rules_fingerprint,
)
from domain.agents.usecases.settings import load_agent
from domain.agents.usecases.variant_groups import (
    MAX_NEW_GROUPS,
    build_group_proof,
    build_group_summary,
    compute_group_fingerprint,
    list_separate_groups,
    load_single_variants,
)
from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import ConfirmedMapping, limit_mappings
from domain.ingestion.model import MappingTier
from domain.ingestion.snapshot_results import MappingRequired
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, InvalidRequest, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, AuditContext
from domain.mappings.confirmation import apply_confirmation
from domain.mappings.model import ColumnEdit, MappingStatus, SourceMapping
from domain.mappings.model_requests import find_request_positions
from domain.mappings.ports import MappingStore
from domain.matching.variant_groups import find_variant_groups
from domain.probes.model import Probe, ProbeReport
from domain.proposals.model import (
    VALIDITY,
    Proof,
    ProofCounts,
    Proposal,
    ProposalFilter,
    ProposalKind,
    ProposalStatus,
    Risk,
    Subject,
)
from domain.proposals.ports import ProposalStore
from domain.proposals.usecases.service import ProposalService
from domain.runs.model import Run, RunFilter, RunStatus, RunTrigger
from domain.runs.ports import RunStore
from domain.runs.run_queue import new_run
from domain.runs.sheets import create_feed_settings
from domain.runs.usecases.category_rules import StoredCategories, load_stored_categories
from domain.runs.usecases.dry_run import MAX_FILE_BYTES, DryRun
from domain.runs.usecases.execution import load_confirmed_mappings
from domain.sources.model import Source, SourceStatus
from domain.sources.ports import SourceStore
from ports.language_models import LanguageModels
from ports.objects import ObjectMissing, ObjectStore
from ports.parsing import ParserFailed, ParserRunner, ParserTerminated
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.agents")
_EXAMINED_RUNS = 20
"""Number of a source's newest runs among which the previous run is searched."""
_MAX_LISTED = 5
ACCEPT_OPERATION = "proposals.accept"
"""Operation under which a change that an agent applies is audited, so that it is undone like an accepted proposal."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """Proposal before it is stored. The fields are those of `Proposal`."""

    agent: AgentKind
    kind: ProposalKind
    subject: Subject
    summary: str
    proof: Proof
    source: str | None = None
    operation: str | None = None
    change: Mapping[str, Any] = field(default_factory=dict)
    risk: Risk = Risk.NORMAL
    fingerprint: str = IMMUTABLE

    def create_proposal(self, agent: Agent, tx: Tx, *, is_applied: bool) -> Proposal:
        """Return the proposal, applied by the agent if `is_applied` is set."""
        decision: dict[str, Any] = (
            {"status": ProposalStatus.APPLIED, "decided_by": agent.id, "decided_at": tx.now} if is_applied else {}
        )
        return Proposal(
            id=new_id("pro"), agent=agent.id, kind=self.kind, subject=self.subject, source=self.source, summary=self.summary,
            change=self.change, operation=self.operation, proof=self.proof, risk=self.risk, expires_at=tx.now + VALIDITY,
            fingerprint=self.fingerprint, created_at=tx.now, updated_at=tx.now, **decision,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _MappingCase:
    """Mapping to test: the mapping, its source, a run with a stored file, and the mappings with which the file is read now."""

    mapping: SourceMapping
    source: Source
    run: Run
    known: tuple[ConfirmedMapping, ...]


@dataclass(frozen=True, slots=True)
class ProposingJob:
    """Handler of `agents.propose` jobs.

    Attributes:
        proposals: The use cases of proposals.
        models: The language models, or None if none is configured.
        run_limited: Runs a slow function within limits of time and memory.
        enabled: Whether the operator permits agents (JOINERY_AGENTS).
        replay_limit: Limits how many files a process replays concurrently.
    """

    uow: UnitOfWork
    proposals: ProposalService
    dry_run: DryRun
    objects: ObjectStore
    models: LanguageModels | None
    run_limited: ParserRunner
    enabled: bool = True
    replay_limit: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(1))

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Examine the object of the job, and store the proposals.

        Args:
            job: The job.
            lost: Set when the job's lease is lost; no further object is then examined.
        """
        if self.enabled:
            if "run" in job.args:
                await self._examine_run(job, str(job.args["run"]), lost)
            elif "mapping" in job.args:
                await self._examine_mapping(job, str(job.args["mapping"]), is_after_run=False)
            else:
                await self._examine_probe(job, str(job.args["probe"]))
        async with self.uow.begin(job.tenant, job.create_context()) as tx:
            await tx[JobStore].finish(job)

    async def _examine_run(self, job: ClaimedJob, id: str, lost: asyncio.Event) -> None:
        """Examine a run that has ended: its mappings, the categories of its source, and its problems."""
        async with self.uow.begin_reading(job.tenant) as tx:
            run = await tx[RunStore].get(id)
            source = await tx[SourceStore].get(run.source) if run else None
            if run is None or source is None:
                return
            newest = (await tx[RunStore].page(PageRequest(_EXAMINED_RUNS), RunFilter(source.id))).items
        await self._note_problems(job, run, source, newest)
        if run.stream == Stream.CATALOGUE and run.status == RunStatus.SUCCEEDED and not lost.is_set():
            await self._examine_groups(job, source, run, lost)
            await self._examine_categories(job, source, run)
        for mapping in run.mappings:
            if not lost.is_set():
                await self._examine_mapping(job, mapping, is_after_run=True)

    async def _note_problems(self, job: ClaimedJob, run: Run, source: Source, newest: tuple[Run, ...]) -> None:
        """Store notes about a run that did not succeed or has many new problems, and about its failing source.

        Nothing is stored if a later run has succeeded.
        """
        previous = next(
            (
                one
                for one in newest
                if one.id < run.id and one.stream == run.stream and one.status == RunStatus.SUCCEEDED
            ),
            None,
        )
        if any(one.id > run.id and one.stream == run.stream and one.status == RunStatus.SUCCEEDED for one in newest):
            return
        subject, proof = Subject("source", source.id), build_run_proof(run, previous)
        if run.error is not None or has_many_new_problems(run, previous):
            note = build_run_note(run, previous)
            await self._store(job, _Draft(AgentKind.TRIAGE, ProposalKind.TRIAGE_NOTE, subject, note, proof, source.id))
        if run.error is not None and source.status in (SourceStatus.DEGRADED, SourceStatus.BLOCKED):
            note = build_source_note(source, run)
            await self._store(
                job, _Draft(AgentKind.SOURCE_DOCTOR, ProposalKind.TRIAGE_NOTE, subject, note, proof, source.id)
            )

    async def _examine_mapping(self, job: ClaimedJob, id: str, *, is_after_run: bool) -> None:
        """Propose the confirmation of a mapping if it improves the import of the stored file.

        Args:
            job: The job.
            id: ID of the mapping.
            is_after_run: Whether a run has used the mapping; False after a model has answered.
        """
        agent = await self._begin_examination(job, AgentKind.MAPPING)
        case = await self._load_mapping_case(job, id, is_after_run=is_after_run) if agent else None
        if case is None:
            return
        mapping, source = case.mapping, case.source
        guessed = [column for column in mapping.columns if column.tier == MappingTier.MODEL]
        edits = tuple(ColumnEdit(column.field, column.position, column.column) for column in guessed)
        settings = create_feed_settings(source, mapping.stream)
        try:
            confirmed = apply_confirmation(mapping, edits, settings, mapping.updated_at)
        except (InvalidRequest, Unprocessable):
            return  # people must map further columns
        learned = ConfirmedMapping(confirmed.digest, True, confirmed.headers, confirmed.columns, confirmed.unmapped)
        async with self.replay_limit.slot(job.tenant.org):
            draft = await self._prove_mapping(job, case, limit_mappings((learned, *case.known)))
        if draft is not None:
            names = [f"{column.column} → {column.field}" for column in guessed]
            summary = f"Confirm the column mapping with {len(mapping.columns)} columns"
            if names:
                more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
                summary += f", of which a language model proposed {', '.join(names[:_MAX_LISTED])}{more}"
            change = {"columns": [{"position": c.position, "column": c.column, "field": c.field} for c in guessed]}
            await self._store(job, replace(draft, summary=f"{summary}.", change=change))

    async def _load_mapping_case(self, job: ClaimedJob, id: str, *, is_after_run: bool) -> _MappingCase | None:
        """Return what is needed to test a mapping; None if there is nothing to propose."""
        async with self.uow.begin_reading(job.tenant) as tx:
            mapping = await tx[MappingStore].get(id)
            source = await tx[SourceStore].get(mapping.source) if mapping else None
            if mapping is None or source is None or mapping.status != MappingStatus.PROPOSED:
                return None
            if is_after_run and self.models is not None and find_request_positions(mapping):
                return None  # the job is repeated after the model has answered
            replayable = await tx[RunStore].list_replayable(source.id, mapping.stream)
            run = next((run for run in replayable if mapping.id in run.mappings), None)
            if run is None or run.snapshot is None:
                return None
            is_guessed = any(column.tier == MappingTier.MODEL for column in mapping.columns)
            if run.status != RunStatus.NEEDS_MAPPING and not is_guessed:
                return None  # runs already use the mapping
            return _MappingCase(mapping, source, run, await load_confirmed_mappings(tx, run))

    async def _prove_mapping(
        self, job: ClaimedJob, case: _MappingCase, confirmed: tuple[ConfirmedMapping, ...]
    ) -> _Draft | None:
        """Replay the stored file without and with the mapping; return the draft, or None if the mapping improves nothing."""
        key, source = case.run.snapshot or "", case.source
        results = []
        try:
            if await self.objects.get_size(key) > MAX_FILE_BYTES:
                return None
            for mappings in (case.known, confirmed):
                async with self.uow.begin_scratch(job.tenant, job.create_context()) as tx:
                    run = new_run(source.id, RunTrigger.PROPOSAL, tx.now, stream=case.mapping.stream)
                    results.append(
                        await self.dry_run.replay_file(
                            tx, source, run.with_snapshot_of(case.run), self.objects.read(key), mappings
                        )
                    )
        except ObjectMissing:
            return None
        before, after = results
        if after.error is not None or not (before.error is None or isinstance(before.error, MappingRequired)):
            return None
        proof = build_proof(case.run.id, before, after)
        if not is_improvement(proof):
            return None
        return _Draft(
            AgentKind.MAPPING, ProposalKind.MAPPING, Subject("mapping", case.mapping.id), "", proof, source.id,
            CONFIRM_MAPPING, risk=assess_risk(proof, case.mapping.columns, before, after),
            fingerprint=compute_mapping_fingerprint(source, case.mapping),
        )  # fmt: skip

    async def _examine_categories(self, job: ClaimedJob, source: Source, run: Run) -> None:
        """Propose category rules for paths whose products have no category."""
        agent = await self._begin_examination(job, AgentKind.CATEGORY)
        if agent is None:
            return
        async with self.uow.begin_reading(job.tenant) as tx, tx.snapshot():
            products = await load_product_categories(tx, source.id)
            paths = await asyncio.to_thread(count_paths_without_category, products)
            if not paths:
                return
            stored = await load_stored_categories(tx, source.id)
            answers = await tx.store(CategoryAnswers).get(source.id)
            filter = ProposalFilter(kind=ProposalKind.CATEGORY_RULES, subject=source.id)
            decided = find_decided_categories((await tx[ProposalStore].page(PageRequest(100), filter)).items)
        candidates = await self._list_candidates(stored)
        unknown = await asyncio.to_thread(find_unknown_paths, products, candidates, answers)
        if unknown:
            requester = CategoryRequester(self.uow, self.models)
            await requester.request_categories(job.tenant, self._create_context(job, agent), agent, source.id, unknown)
            async with self.uow.begin_reading(job.tenant) as tx:
                answers = await tx.store(CategoryAnswers).get(source.id)
        known = {candidate.path for candidate in candidates}
        candidates += [
            ProposedCategory(answer.path, answer.category, CategoryOrigin.MODEL)
            for answer in (answers.answers if answers else ())
            if answer.category is not None and answer.path not in known
        ]
        candidates = [one for one in candidates if (one.path, one.category) not in decided]
        proposed = await asyncio.to_thread(select_categories, paths, candidates)
        if not proposed:
            return
        rules = stored.rules.rules if stored.rules else ()
        proof, risk = await asyncio.to_thread(prove_categories, run.id, products, rules, proposed)
        if proof.after.problems >= proof.before.problems:
            return
        change = {"rules": [{"path": list(one.path), "category": one.category} for one in proposed]}
        number = proof.after.products - proof.before.products
        summary = f"Set {len(proposed)} category rules, which give {number:,} products a category."
        draft = _Draft(
            AgentKind.CATEGORY, ProposalKind.CATEGORY_RULES, Subject("source", source.id), summary, proof, source.id,
            SET_CATEGORIES, change, risk, compute_rules_fingerprint(stored.rules),
        )  # fmt: skip
        await self._store(job, draft)

    async def _list_candidates(self, stored: StoredCategories) -> list[ProposedCategory]:
        try:
            return await self.run_limited(list_candidates, stored)
        except (ParserTerminated, ParserFailed) as error:
            _LOG.warning("suggestions of categories not computed", extra={"reason": str(error)})
            return []

    async def _examine_groups(self, job: ClaimedJob, source: Source, run: Run, lost: asyncio.Event) -> None:
        """Propose groups of products that are variants of one product."""
        agent = await self._begin_examination(job, AgentKind.GROUPING)
        if agent is None:
            return
        async with self.uow.begin_reading(job.tenant) as tx:
            variants = await load_single_variants(tx, source.id)
        try:
            groups = await self.run_limited(find_variant_groups, variants)
        except (ParserTerminated, ParserFailed) as error:
            _LOG.warning("groups of variants not computed", extra={"reason": str(error)})
            return
        async with self.uow.begin_reading(job.tenant) as tx:
            groups = await list_separate_groups(tx, groups)
            latest = await tx[ProposalStore].list_latest(agent.id, [group.members[0].product for group in groups])
        known = {one.subject.id: one.change for one in latest if one.status != ProposalStatus.STALE}
        new = [group for group in groups if group.build_grouping() != known.get(group.members[0].product)]
        stored = {one.variant: one for one in variants}
        for group in new[:MAX_NEW_GROUPS]:
            if lost.is_set():
                return
            members = [stored[member.variant] for member in group.members]
            draft = _Draft(
                AgentKind.GROUPING, ProposalKind.VARIANT_GROUP, Subject("product", group.members[0].product),
                build_group_summary(group), build_group_proof(run.id, group), source.id, GROUP_PRODUCTS,
                dict(group.build_grouping()), fingerprint=compute_group_fingerprint(members),
            )  # fmt: skip
            await self._store(job, draft)

    async def _examine_probe(self, job: ClaimedJob, id: str) -> None:
        """Propose the source that a website check has found."""
        agent = await self._begin_examination(job, AgentKind.SOURCE_DOCTOR)
        async with self.uow.begin_reading(job.tenant) as tx:
            probe = await tx.store(Probe).get(id)
        if agent is None or probe is None or probe.proposal is None or probe.report is None:
            return
        products = _count_products(probe.report)
        malformed = probe.report.sample.malformed_blocks if probe.report.sample else 0
        proof = Proof(probe.id, ProofCounts(), ProofCounts(products, products, malformed))
        count = f" with {products:,} products" if products else ""
        summary = f"Create a source for {probe.report.final_url}{count}. {' '.join(probe.report.estimate.reasons)}"
        draft = _Draft(
            AgentKind.SOURCE_DOCTOR, ProposalKind.SOURCE, Subject("source_probe", probe.id), summary.strip(), proof,
            operation=CREATE_SOURCE, change=probe.proposal,
        )  # fmt: skip
        await self._store(job, draft)

    async def _begin_examination(self, job: ClaimedJob, kind: AgentKind) -> Agent | None:
        """Record that the agent examines data, and return it; None if it is off."""
        async with self.uow.begin(job.tenant, job.create_context()) as tx:
            agent = await load_agent(tx, kind)
            if agent.autonomy == Autonomy.OFF:
                return None
            await tx[AgentStore].record_run(agent)
        return agent

    async def _store(self, job: ClaimedJob, draft: _Draft) -> None:
        """Store a draft as a proposal; apply it at once if the agent may, else let it wait for a person."""
        agent = await self._begin_examination(job, draft.agent)
        if agent is None:
            return
        if agent.autonomy == Autonomy.AUTO_LOW_RISK and draft.risk == Risk.LOW:
            try:
                context = replace(self._create_context(job, agent), operation=ACCEPT_OPERATION, is_reversible=True)
                async with self.uow.begin(job.tenant, context) as tx:
                    await self._add(tx, agent, draft, is_applied=True)
            except DomainError as error:  # such as an open run
                _LOG.info("change of an agent not applied", extra={"agent": agent.kind, "reason": error.detail})
            else:
                return
        async with self.uow.begin(job.tenant, self._create_context(job, agent)) as tx:
            await self._add(tx, agent, draft, is_applied=False)

    async def _add(self, tx: Tx, agent: Agent, draft: _Draft, *, is_applied: bool) -> None:
        """Store the proposal unless its subject has changed, or the agent's latest proposal was the same.

        The same change is proposed again only after the former proposal became stale.
        """
        proposal = draft.create_proposal(agent, tx, is_applied=is_applied)
        if await self.proposals.changes.lock_subject(tx, proposal) != proposal.fingerprint:
            return
        latest = await tx[ProposalStore].list_latest(agent.id, [proposal.subject.id])
        if not any(one.status != ProposalStatus.STALE and one.repeats(proposal) for one in latest):
            await self.proposals.add(tx, proposal)

    def _create_context(self, job: ClaimedJob, agent: Agent) -> AuditContext:
        return AuditContext(Actor("agent", agent.id), job.kind, job_id=job.id)


def _count_products(report: ProbeReport) -> int:
    """Return the number of products that a website check has counted: in a feed, else the product pages in sitemaps."""
    if report.feed is not None and report.feed.products is not None:
        return report.feed.total or report.feed.products
    return report.sitemap.product_pages if report.sitemap is not None else 0
