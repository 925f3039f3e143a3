"""Statements that deliberately span organisations. Every other one finds its way to the server of one (tests/meta)."""

from collections.abc import Mapping
from typing import Final

SCATTERS: Final[Mapping[str, str]] = {
    "events.bounds": "one listener asks how far all logs go that are followed; each is named",
    "events.publishers": "the relay reads every publisher's log",
    "events.publishers_among": "the relay asks of those that wrote; each is named",
    "exports.due": "the scheduler serves every organisation; each export expires in its name",
    "exports.waiting_since": "the operator's look at how long exports wait",
    "idempotency.expired": "upkeep by age alone: whose answers are old",
    "idempotency.purge_expired": "upkeep by age alone; each organisation is named",
    "jobs.backlog": "operators look at what waits of all",
    "jobs.dispatched": "the relay serves every organisation's jobs",
    "jobs.lanes_due": "the relay serves every organisation's jobs",
    "jobs.mark_dispatched": "the relay serves every organisation's jobs; each is named",
    "jobs.next_due": "the relay serves every organisation's jobs",
    "jobs.orgs_of_lane": "whose a lane is that an earlier release named",
    "jobs.reset_dispatched": "the relay serves every organisation's jobs; each is named",
    "mail.address": "mail comes before it is known whose it is",
    "match_index.backlog": "operators ask how far matching is behind, all organisations together",
    "secrets.counts": "operators ask how much is sealed under which secret",
    "secrets.stale_answers": "what is sealed under a former secret is sealed anew, whosever it is",
    "secrets.stale_former_webhook_secrets": "the same",
    "secrets.stale_kept_for_undoing": "the same",
    "secrets.stale_source_credentials": "the same",
    "secrets.stale_webhook_secrets": "the same",
    "sources.due": "the scheduler serves every organisation's sources",
    "sources.next_due": "the scheduler serves every organisation's sources",
    "storage.batches": "operators look at every organisation's; each is named",
    "storage.due": "the scheduler serves every organisation; each entry is freed in its name",
    "storage.freed": "the scheduler serves every organisation; each entry is named with its tenant",
    "storage.holdings": "the operator's sums",
    "storage.waiting": "the operator's sums",
    "webhook_deliveries.lapsed_rotations": "the scheduler serves every organisation's endpoints",
    "webhook_deliveries.subscribers": "a worker serves every organisation's endpoints",
    "workload.tenants": "the operator's look at who has most to do",
    "workload.slowest": "the operator's look at slow sources",
    "workload.troubled": "the operator's look at sources that fail",
    "usage.unfolded": "the scheduler folds what tenants have counted",
    "usage.to_resume": "the scheduler lets go what a month or plan held back",
}
"""By name, each with the reason. Those that read `here.` are asked on every server of what it holds itself."""
