"""What waits for its time while endpoints come and go."""

import gc
import weakref
from typing import Any, cast

import pytest

from domain.kernel.tenancy import Tenant
from domain.webhooks.lane import Lane
from domain.webhooks.model import SealedSecrets
from domain.webhooks.sending import Sending
from ports.webhooks import Subscriber
from tests.support import builders

pytestmark = pytest.mark.asyncio


async def test_what_waits_for_an_endpoint_that_is_left_is_forgotten() -> None:
    nothing = cast("Any", None)
    sending = Sending(nothing, nothing, nothing, nothing, nothing)
    lanes = [
        Lane(Subscriber(Tenant("org_1", True), builders.endpoint(), SealedSecrets(b""), 0, fat=False)) for _ in "ab"
    ]
    for lane in lanes:
        for number in range(10):
            item = lane.restore(builders.delivery("whe_1", subject=f"ofr_{number}", positions=(number,)), 0.0, 1e12)
            assert item is not None
            sending.schedule(lane, item)
    lanes[0].served = False
    sending.forget()
    left, kept = weakref.ref(lanes.pop(0)), weakref.ref(lanes.pop())
    del lane, item
    gc.collect()
    assert left() is None
    assert kept() is not None
