"""JSON of proposals (docs/agents.md)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from adapters.api_json.resource import Body, JsonResource
from domain.kernel.resource import RenderContext, computed, optional
from domain.kernel.schema import (
    array,
    enum,
    id_schema,
    integer,
    map_schema,
    response_object,
    strict_object,
    text,
    timestamp,
    with_title,
)
from domain.kernel.tenancy import Tenant
from domain.proposals.model import (
    MAX_SAMPLES,
    MAX_SUMMARY_CHARS,
    Proof,
    ProofCounts,
    Proposal,
    ProposalKind,
    ProposalStatus,
    Risk,
)

MAX_REASON_CHARS: Final = 500
_COUNTS = with_title(
    "proof_counts",
    response_object(
        None,
        {
            "rows": integer(1_200, minimum=0, description="Rows read, or products examined."),
            "products": integer(
                1_180,
                minimum=0,
                description="Products with a usable result; for category rules: with a category; for groups: products that readers see.",
            ),
            "problems": integer(
                20, minimum=0, description="Problems of the rows; for category rules: products without a category."
            ),
        },
    ),
)
_SAMPLE = with_title(
    "proof_sample",
    response_object(
        None,
        {
            "path": text(
                "data.materials",
                max_length=10_000,
                description="The field, the source's category path, or for a group the title of a product.",
            ),
            "old": {"description": "The value before the change, or null."},
            "new": {"description": "The value after the change, or null."},
        },
    ),
)
_PROOF = with_title(
    "proposal_proof",
    response_object(
        None,
        {
            "snapshot": text(
                "run_01J8ZQ5T3V7XK2M9RB4CDW",
                max_length=40,
                description="The ID of the run or website check whose stored data was used.",
            ),
            "before": _COUNTS,
            "after": _COUNTS,
            "samples": array(_SAMPLE, max_items=MAX_SAMPLES, description="Values that the change sets."),
        },
        optional=("snapshot",),
        description="The result of testing the change on stored data.",
    ),
)
_SUBJECT = with_title(
    "proposal_subject",
    response_object(
        None,
        {
            "object": enum("mapping", "source", "source_probe", "product"),
            "id": text("map_01J8ZQ5T3V7XK2M9RB4CDW", max_length=40),
        },
    ),
)


def _render_counts(counts: ProofCounts) -> Mapping[str, int]:
    return {"rows": counts.rows, "products": counts.products, "problems": counts.problems}


def _render_proof(proof: Proof) -> Mapping[str, Any]:
    snapshot = {"snapshot": proof.snapshot} if proof.snapshot else {}
    return {
        **snapshot,
        "before": _render_counts(proof.before),
        "after": _render_counts(proof.after),
        "samples": [{"path": one.path, "old": one.old, "new": one.new} for one in proof.samples],
    }


PROPOSAL = JsonResource[Proposal](
    "proposal",
    {
        "id": id_schema("pro"),
        "agent": id_schema("agt"),
        "kind": enum(*ProposalKind),
        "status": enum(*ProposalStatus),
        "subject": computed(_SUBJECT, lambda proposal, _: proposal.subject),
        "summary": text("Confirm the column mapping with 12 columns.", max_length=MAX_SUMMARY_CHARS),
        "change": map_schema(
            {},
            {"columns": [{"position": 2, "column": "Zorbvane", "field": "materials"}]},
            "The body of the operation; empty for a note.",
        ),
        "operation": optional(
            text(
                "mappings.confirm",
                description="The operation that accepting executes; `matching.group_products` has no path of its own. Omitted for a note.",
            )
        ),
        "proof": computed(_PROOF, lambda proposal, _: _render_proof(proposal.proof)),
        "risk": enum(*Risk),
        "reason": optional(
            text("A newer proposal replaces this one.", description="Why the proposal is stale or was dismissed.")
        ),
        "decided_by": optional(
            text(
                "usr_01J8ZQ5T3V7XK2M9RB4CDW",
                max_length=100,
                description="The ID of the user, key, app or agent that applied or dismissed the proposal.",
            )
        ),
        "decided_at": optional(timestamp("When the proposal was applied or dismissed, or became stale.")),
        "expires_at": timestamp("When the proposal becomes stale unless it is decided before."),
    },
    path="/v1/proposals/{id}",
    description="A change that an agent proposes and has tested on stored data, or a note about a problem.",
)
REJECTION = Body[str | None](
    strict_object({"reason": text("The column contains something else.", max_length=MAX_REASON_CHARS)}),
    lambda body: body.get("reason"),
    is_required=False,
)


def render_proposal(proposal: Proposal, tenant: Tenant, now: datetime) -> Mapping[str, Any]:
    """Render a proposal as the data of an event."""
    return PROPOSAL.render(proposal, RenderContext(tenant, now))
