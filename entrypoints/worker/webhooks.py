"""The worker's part that delivers webhooks, put together."""

from domain.kernel.tenancy import Actor, Call, Tenant
from domain.webhooks.delivering import Deliverer
from domain.webhooks.posting import Posting
from domain.webhooks.sending import Disable
from domain.webhooks.usecases import WebhookService
from entrypoints.container import Container, product_version
from ports.unit_of_work import UnitOfWork

_CALL = Call(Actor("service", "webhooks"), "webhooks.disable")


def disabling(uow: UnitOfWork, service: WebhookService) -> Disable:
    """Disables an endpoint in a transaction of its own, in the service's name."""

    async def disable(tenant: Tenant, endpoint: str, reason: str) -> None:
        async with uow.begin(tenant, _CALL) as tx:
            await service.disable(tx, endpoint, reason)

    return disable


def deliverer_of(container: Container) -> Deliverer:
    """The process's deliverer; its follower must be run beside it."""
    service = container.use_cases().webhooks
    log, clock = container.delivery_log(), container.clock()
    posting = Posting(
        container.follower().log,
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
    return Deliverer(container.follower(), log, container.shards(), posting, disable, container.signals(), clock)
