"""The worker's part that delivers webhooks, put together."""

from domain.webhooks.usecases.deliverer import Deliverer
from domain.webhooks.usecases.posting import Posting
from entrypoints.areas import webhooks
from entrypoints.container import Container, product_version


def deliverer_of(container: Container) -> Deliverer:
    """The process's deliverer; its log tailer must be run beside it."""
    given = container.assembled()
    posting = Posting(
        given.tailer.log,
        given.delivery_log,
        given.sender,
        container.payloads(),
        given.vault,
        given.feed_cursors,
        given.clock,
        f"Joinery/{product_version()}",
    )
    service = webhooks.service(given)
    return Deliverer(
        given.tailer, given.delivery_log, given.shards, posting, service, given.uow, given.signals, given.clock
    )
