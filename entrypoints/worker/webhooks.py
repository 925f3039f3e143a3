"""The worker's part that delivers webhooks, put together."""

from domain.webhooks.usecases.deliverer import Deliverer
from domain.webhooks.usecases.posting import Posting
from entrypoints.container import Container, product_version


def deliverer_of(container: Container) -> Deliverer:
    """The process's deliverer; its log tailer must be run beside it."""
    log, clock = container.delivery_log(), container.clock()
    posting = Posting(
        container.tailer().log,
        log,
        container.sender(),
        container.payloads(),
        container.vault(),
        container.feed_cursors(),
        clock,
        f"Joinery/{product_version()}",
    )
    return Deliverer(
        container.tailer(),
        log,
        container.shards(),
        posting,
        container.use_cases().webhooks,
        container.uow(),
        container.signals(),
        clock,
    )
