"""The worker's part that delivers webhooks, put together."""

from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.webhooks.model import DisabledReason
from domain.webhooks.usecases.deliverer import Deliverer
from domain.webhooks.usecases.posting import Posting
from domain.webhooks.usecases.sending import Disable
from domain.webhooks.usecases.service import WebhookService
from entrypoints.container import Container, product_version
from ports.unit_of_work import UnitOfWork

_CONTEXT = AuditContext(Actor("service", "webhooks"), "webhooks.disable")


def disabling(uow: UnitOfWork, service: WebhookService) -> Disable:
    """Disables an endpoint in a transaction of its own, in the service's name."""

    async def disable(tenant: Tenant, endpoint: str, reason: DisabledReason) -> None:
        async with uow.begin(tenant, _CONTEXT) as tx:
            await service.disable(tx, endpoint, reason)

    return disable


def deliverer_of(container: Container) -> Deliverer:
    """The process's deliverer; its follower must be run beside it."""
    service = container.use_cases().webhooks
    log, clock = container.delivery_log(), container.clock()
    posting = Posting(
        container.tailer().log,
        log,
        container.sender(),
        container.payloads(),
        container.objects_as_of(),
        service.signing_keys,
        container.feed_cursors().sign,
        clock,
        f"Joinery/{product_version()}",
    )
    disable = disabling(container.uow(), service)
    return Deliverer(container.tailer(), log, container.shards(), posting, disable, container.signals(), clock)
