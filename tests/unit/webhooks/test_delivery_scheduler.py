"""Scheduled deliveries while endpoints are added and removed."""

import gc
import weakref
from typing import Any, cast

import pytest

from domain.changes.model import FeedPosition
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import EncryptedSecrets
from domain.webhooks.ports import Subscriber
from domain.webhooks.usecases.endpoint_queue import EndpointQueue
from domain.webhooks.usecases.scheduler import DeliveryScheduler
from tests.support import builders

pytestmark = pytest.mark.asyncio


async def test_deliveries_of_a_released_endpoint_are_dropped() -> None:
    nothing = cast("Any", None)
    sending = DeliveryScheduler(nothing, nothing, nothing, nothing, nothing, nothing)
    queues = [
        EndpointQueue(
            Subscriber(
                Tenant("org_1", True),
                builders.endpoint(),
                EncryptedSecrets(b""),
                FeedPosition(),
                includes_fat_payloads=False,
            )
        )
        for _ in "ab"
    ]
    for queue in queues:
        for number in range(10):
            item = queue.add_stored(builders.delivery("whe_1", subject=f"ofr_{number}", positions=(number,)), 0.0, 1e12)
            assert item is not None
            sending.schedule(queue, item)
    queues[0].stop_serving()
    sending.drop_unserved()
    released, served = weakref.ref(queues.pop(0)), weakref.ref(queues.pop())
    del queue, item
    gc.collect()
    assert released() is None
    assert served() is not None
